//! A picture of dots in the characters of a terminal: each character has two by four.

/// The character without dots; the dots are the bits above it.
const BLANK: u32 = 0x2800;
/// The bits of the dots of a character, by row and column.
const BITS: [[u32; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
/// Colours of lines, one after the other.
const COLOURS: [u8; 6] = [36, 33, 32, 35, 34, 31];

/// A picture.
#[derive(Debug)]
pub struct Canvas {
    columns: usize,
    rows: usize,
    /// The dots of each character, and the line that it belongs to.
    cells: Vec<(u32, usize)>,
}

/// The look of a picture.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Whether lines have colours.
    pub has_colour: bool,
    /// Whether the terminal shows dots of Braille; otherwise a character with dots is a star.
    pub has_braille: bool,
}

impl Canvas {
    /// Creates an empty picture.
    pub fn new(columns: usize, rows: usize) -> Self {
        Canvas { columns, rows, cells: vec![(0, 0); columns * rows] }
    }

    /// Returns how many dots there are across and down.
    pub fn dots(&self) -> (usize, usize) {
        (2 * self.columns, 4 * self.rows)
    }

    /// Sets the dots of a column from one height to another. Both are shares of the picture, from below.
    pub fn bar(&mut self, x: usize, from: f64, to: f64, line: usize) {
        let (width, height) = self.dots();
        if x >= width || height == 0 {
            return;
        }
        let row = |share: f64| height - 1 - ((share.clamp(0.0, 1.0) * (height - 1) as f64).round() as usize);
        for y in row(from.max(to))..=row(from.min(to)) {
            let cell = &mut self.cells[y / 4 * self.columns + x / 2];
            *cell = (cell.0 | BITS[y % 4][x % 2], line);
        }
    }

    /// Returns a row as text.
    pub fn row(&self, row: usize, look: Look) -> String {
        let mut text = String::new();
        let mut colour = None;
        for (dots, line) in &self.cells[row * self.columns..][..self.columns] {
            let wanted = (look.has_colour && *dots != 0).then_some(*line);
            if wanted.is_some() && wanted != colour {
                text.push_str(&begin(*line));
                colour = wanted;
            }
            text.push(match (look.has_braille, dots) {
                (true, dots) => char::from_u32(BLANK + dots).unwrap_or(' '),
                (false, 0) => ' ',
                (false, _) => '*',
            });
        }
        text + if colour.is_some() { "\x1b[0m" } else { "" }
    }
}

/// Returns a text in the colour of a line.
pub fn coloured(text: &str, line: usize, look: Look) -> String {
    if look.has_colour { format!("{}{text}\x1b[0m", begin(line)) } else { text.to_owned() }
}

fn begin(line: usize) -> String {
    format!("\x1b[{}m", COLOURS[line % COLOURS.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Look = Look { has_colour: false, has_braille: true };

    #[test]
    fn dots_stand_where_they_are_set() {
        let mut canvas = Canvas::new(2, 2);
        canvas.bar(0, 0.0, 0.0, 0);
        canvas.bar(3, 0.0, 1.0, 1);
        canvas.bar(1, 1.0, 1.0, 0);
        canvas.bar(9, 0.0, 1.0, 0);
        assert_eq!([canvas.row(0, PLAIN), canvas.row(1, PLAIN)], ["⠈⢸", "⡀⢸"]);
        assert_eq!(canvas.row(1, Look { has_braille: false, ..PLAIN }), "**");
        let colours = Look { has_colour: true, ..PLAIN };
        assert_eq!(canvas.row(0, colours), "\x1b[36m⠈\x1b[33m⢸\x1b[0m");
        assert_eq!(Canvas::new(0, 0).dots(), (0, 0));
    }
}
