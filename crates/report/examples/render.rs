//! Renders a result into every form: `cargo run -p hodo-report --example render -- result.json folder`.

use hodo_report::{Style, html, json, markdown, plot, table, tsv};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, input, folder] = arguments.as_slice() else {
        return Err("usage: render RESULT.json FOLDER".into());
    };
    let document = json::from_str(&std::fs::read_to_string(input)?).map_err(|error| format!("{input}: {error}"))?;
    let folder = Path::new(folder);
    std::fs::create_dir_all(folder)?;
    let measurements = &document.measurements;
    std::fs::write(folder.join("result.json"), json::to_string(&document))?;
    std::fs::write(folder.join("result.tsv"), tsv(&document))?;
    std::fs::write(folder.join("result.md"), markdown(measurements))?;
    std::fs::write(folder.join("result.txt"), table(measurements, Style { width: 160, color: false }))?;
    std::fs::write(folder.join("result.html"), html(&document))?;
    let named =
        plot::Picture::ALL.map(|picture| (format!("{picture:?}").to_lowercase(), plot::svg(picture, &document)));
    for (name, svg) in named.into_iter().chain([("sheet".into(), plot::sheet(&document))]) {
        let Some(svg) = svg else { continue };
        std::fs::write(folder.join(format!("{name}.png")), plot::png(&svg, 1.5)?)?;
        std::fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    Ok(())
}
