//! ELF libraries for the host: function by function if they have names, otherwise as a whole. IREE names only the
//! function that lists the others.

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};

use benchgate_core::model::Metric;

use super::{BadCode, CodeObject, CodeOfKernel, sha256};

/// Counts of a decoder in the code of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) instructions: u64,
    /// Instructions that compute with one floating-point number.
    pub(super) scalar_float: u64,
    /// Instructions that work on vectors of 128, 256 and 512 bits, and of the processor's own length; `None` if the
    /// architecture has none.
    pub(super) vector: [Option<u64>; 4],
    /// Bytes; `None` if they are computed at run time.
    pub(super) stack_frame: Option<u64>,
}

impl Counted {
    pub(super) fn add_vector(&mut self, width: usize) {
        self.vector[width] = self.vector[width].map(|count| count + 1);
    }
}

/// Reads a library whose code this decoder knows.
pub(super) fn read(
    file: &ElfFile64<'_, LittleEndian>,
    architecture: &str,
    count: fn(&[u8]) -> Counted,
) -> Result<CodeObject, BadCode> {
    let text: Vec<_> = file.sections().filter(|section| section.kind() == SectionKind::Text).collect();
    let size: u64 = text.iter().map(ObjectSection::size).sum();
    let mut kernels = functions(file, |section| section.kind() == SectionKind::Text);
    let named: u64 = kernels.values().map(|code| code.len() as u64).sum();
    if named < size / 2 {
        let [section] = &text[..] else {
            return Err("library with several sections of unnamed code".to_owned());
        };
        let code = section.data().map_err(|error| format!("broken section: {error}"))?;
        kernels = BTreeMap::from([(".text", code)]);
    }
    let kernels = kernels.into_iter().map(|(name, code)| CodeOfKernel {
        name: name.to_owned(),
        sha256: sha256(&[code]),
        facts: facts(&count(code), code.len()),
    });
    let kernels = kernels.collect();
    Ok(CodeObject { architecture: architecture.to_owned(), kernels, ptx: None })
}

fn facts(counted: &Counted, size: usize) -> Vec<(Metric, f64)> {
    let mut facts = vec![
        (Metric::INSTRUCTIONS, counted.instructions),
        (Metric::SCALAR_FLOAT_INSTRUCTIONS, counted.scalar_float),
        (Metric::CODE_SIZE, size as u64),
    ];
    let widths = [
        Metric::VECTOR_128_INSTRUCTIONS,
        Metric::VECTOR_256_INSTRUCTIONS,
        Metric::VECTOR_512_INSTRUCTIONS,
        Metric::VECTOR_SCALABLE_INSTRUCTIONS,
    ];
    let vector = widths.into_iter().zip(counted.vector);
    facts.extend(vector.filter_map(|(metric, count)| Some((metric, count?))));
    facts.extend(counted.stack_frame.map(|frame| (Metric::STACK_FRAME, frame)));
    facts.into_iter().map(|(metric, value)| (metric, value as f64)).collect()
}

/// The bytes of each function in the sections that `wanted` picks, by its name.
pub(super) fn functions<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    wanted: impl Fn(&object::read::elf::ElfSection64<'a, '_, LittleEndian>) -> bool,
) -> BTreeMap<&'a str, &'a [u8]> {
    let mut found = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 {
            continue;
        }
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section.filter(|section| wanted(section)) else { continue };
        // A symbol beyond its section is a broken one, and names no code.
        let code = section.data_range(symbol.address(), symbol.size()).unwrap_or_default();
        if let (Ok(name), Some(code)) = (symbol.name(), code) {
            found.entry(name).or_insert(code);
        }
    }
    found
}
