use hodo_machine::Random;

/// Draws from the normal distribution with mean 0 and standard deviation 1.
pub(crate) fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

#[test]
fn normal_has_unit_variance() {
    let mut random = Random::new(3);
    let drawn: Vec<f64> = (0..20_000).map(|_| normal(&mut random)).collect();
    assert!(crate::statistics::mean(&drawn).abs() < 0.03);
    assert!((crate::statistics::standard_deviation(&drawn) - 1.0).abs() < 0.03);
}
