//! PNG from SVG.

use resvg::{tiny_skia, usvg};

/// Twice the size: sharp on screens with dense pixels, and still small.
const SCALE: f32 = 2.0;

/// DejaVu Sans, cut down; `font/README.md` says how.
const FONT: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");

/// Renders one of our own SVGs, with the embedded font and no other.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options { font_family: "DejaVu Sans".to_owned(), ..usvg::Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_data(FONT.to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("an empty picture")?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("a picture without pixels")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| error.to_string())
}
