//! ELF libraries for the host, read function by function if the functions have names, otherwise as a whole.
//! IREE's libraries have no symbols for their kernels, but tables of their addresses and names.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::{ElfFile64, ElfSection64};
use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, SectionIndex, SectionKind,
    SymbolKind, elf,
};

use benchgate_core::model::{Metric, digest_of};

use super::{BadCode, CodeObject, CodeOfKernel};

/// The counts that a decoder makes in the code of a function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Counted {
    pub(super) instructions: u64,
    /// Instructions that compute with one floating-point number.
    pub(super) scalar_float: u64,
    /// Numbers of instructions on vectors of 128, 256 and 512 bits, and of the processor's own length; `None`
    /// if the architecture has none.
    pub(super) vector: [Option<u64>; 4],
    /// Stack frame in bytes; `None` if its size is computed at run time.
    pub(super) stack_frame: Option<u64>,
    /// The code with all position-dependent addresses zeroed.
    pub(super) movable: Vec<u8>,
}

impl Counted {
    pub(super) fn add_vector(&mut self, width: usize) {
        self.vector[width] = self.vector[width].map(|count| count + 1);
    }
}

/// Reads a library whose code this decoder understands.
pub(super) fn read(
    file: &ElfFile64<'_, LittleEndian>,
    architecture: &str,
    count: fn(&[u8]) -> Counted,
) -> Result<CodeObject, BadCode> {
    let text: Vec<_> = file.sections().filter(|section| section.kind() == SectionKind::Text).collect();
    let size: u64 = text.iter().map(ObjectSection::size).sum();
    let functions = functions(file, |section| section.kind() == SectionKind::Text)?;
    let named: u64 = functions.values().map(|code| code.len() as u64).sum();
    let mut kernels: Vec<(&str, &[u8])> = functions.into_iter().collect();
    if named < size / 2 {
        let [section] = &text[..] else {
            return Err("library with several sections of unnamed code".to_owned());
        };
        kernels = match exported(file, section) {
            Some(kernels) => kernels,
            None => vec![(".text", section.data().map_err(|error| format!("broken section: {error}"))?)],
        };
    }
    check_overlap(kernels.iter().map(|(_, code)| code.len()), file.data().len())?;
    let kernels = kernels.into_iter().map(|(name, code)| {
        let counted = count(code);
        CodeOfKernel {
            name: name.to_owned(),
            sha256: digest_of([&counted.movable]),
            facts: facts(&counted, code.len()),
        }
    });
    let kernels = kernels.collect();
    Ok(CodeObject { architecture: architecture.to_owned(), kernels, ptx: None })
}

/// Maximum number of exports of one library.
const MOST_EXPORTS: usize = 100_000;
/// Number of tables after the table of addresses in a library's description: attributes, parameters, names.
const TABLES: u64 = 8;
const POINTER: u64 = 8;
/// Longest name that is read, in bytes.
const LONGEST_NAME: u64 = 4096;
/// The function that returns a library's description.
const QUERY: &str = "iree_hal_executable_library_query";
/// Name for the library's code that is not part of a kernel.
const OTHER: &str = "(other code)";

/// Returns the kernels of an IREE library, in its order. Its description has pointers to a table of their
/// addresses and a table of their names, which relocations fill (iree/hal/local/executable_library.h); the
/// tables in between differ by version. `None` if there are no such tables.
fn exported<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    text: &ElfSection64<'a, '_, LittleEndian>,
) -> Option<Vec<(&'a str, &'a [u8])>> {
    let is_pointer = |flags| {
        let RelocationFlags::Elf { r_type } = flags else { return false };
        [elf::R_X86_64_RELATIVE, elf::R_AARCH64_RELATIVE].contains(&r_type)
    };
    let pointers = file.dynamic_relocations()?.filter(|(_, relocation)| is_pointer(relocation.flags()));
    let pointers: BTreeMap<u64, u64> =
        pointers.map(|(at, relocation)| (at, relocation.addend().cast_unsigned())).collect();
    let code = text.address()..text.address().checked_add(text.size())?;
    let table: Vec<(u64, u64)> =
        pointers.iter().map(|(at, to)| (*at, *to)).filter(|(_, to)| code.contains(to)).collect();
    let (first, _) = *table.first()?;
    let is_one_table = (0..).zip(&table).all(|(number, (at, _))| entry(first, number) == Some(*at));
    if !is_one_table || table.len() > MOST_EXPORTS {
        return None;
    }
    let (description, _) = pointers.iter().find(|(_, to)| **to == first)?;
    let after = description.checked_add(POINTER)?..description.checked_add(TABLES * POINTER)?;
    let names = pointers.range(after).find_map(|(_, at)| names(file, &pointers, *at, table.len()))?;
    let mut starts: BTreeSet<u64> = table.iter().map(|(_, from)| *from).collect();
    let kernels: BTreeSet<u64> = starts.clone();
    starts.insert(code.start);
    let mut queries = BTreeSet::new();
    for symbol in file.dynamic_symbols().filter(|symbol| code.contains(&symbol.address())) {
        starts.insert(symbol.address());
        if symbol.name() == Ok(QUERY) {
            queries.insert(symbol.address());
        }
    }
    let bytes = |from: u64| {
        let end = starts.range(from + 1..).next().copied().unwrap_or(code.end);
        text.data_range(from, end - from).ok().flatten().map(without_padding)
    };
    let mut found: Vec<(&str, &[u8])> = Vec::new();
    for (name, (_, from)) in names.into_iter().zip(&table) {
        found.push((name, bytes(*from)?));
    }
    for from in starts.iter().filter(|from| !kernels.contains(from) && !queries.contains(from)) {
        found.push((OTHER, bytes(*from)?));
    }
    found.retain(|(_, code)| !code.is_empty());
    Some(found)
}

/// Returns the address of an entry in a table of pointers.
fn entry(table: u64, number: u64) -> Option<u64> {
    table.checked_add(number.checked_mul(POINTER)?)
}

/// Returns the strings that a table of pointers refers to, all of them in one section.
fn names<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    pointers: &BTreeMap<u64, u64>,
    table: u64,
    count: usize,
) -> Option<Vec<&'a str>> {
    let places = (0..count as u64).map(|number| pointers.get(&entry(table, number)?).copied());
    let places: Vec<u64> = places.collect::<Option<_>>()?;
    let section = file.sections().find(|section| {
        let (start, size) = (section.address(), section.size());
        let is_of_constants =
            matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::ReadOnlyString);
        is_of_constants && places.first().is_some_and(|at| *at >= start && at - start < size)
    })?;
    let mut left_of_names = MOST_NAMES;
    let string = |at: u64| {
        let left = section.size().checked_sub(at.checked_sub(section.address())?)?;
        let bytes = section.data_range(at, left.min(LONGEST_NAME)).ok().flatten()?;
        let end = bytes.iter().position(|byte| *byte == 0)?;
        left_of_names = left_of_names.checked_sub(end)?;
        std::str::from_utf8(&bytes[..end]).ok().filter(|name| !name.is_empty())
    };
    places.into_iter().map(string).collect()
}

/// Returns a function without the `int3` padding before the next one.
fn without_padding(code: &[u8]) -> &[u8] {
    const INT3: u8 = 0xcc;
    let end = code.iter().rposition(|byte| *byte != INT3).map_or(0, |last| last + 1);
    &code[..end]
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

/// A symbol whose name can be read.
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) kind: SymbolKind,
    pub(super) section: Option<SectionIndex>,
}

/// Maximum total length of all names. Many symbols can refer to one long name, each beginning at another
/// position in it, and reading them all would take time quadratic in the file's size.
const MOST_NAMES: usize = 16 << 20;

/// Returns the symbols of a file, with those of the dynamic linker last.
pub(super) fn symbols<'a>(
    file: &ElfFile64<'a, LittleEndian>,
) -> impl Iterator<Item = Result<Named<'a>, BadCode>> {
    let mut left = MOST_NAMES;
    file.symbols().chain(file.dynamic_symbols()).filter_map(move |symbol| {
        let name = symbol.name_bytes().ok()?;
        let Some(rest) = left.checked_sub(name.len()) else {
            return Some(Err(format!("symbol names take more than {} MiB", MOST_NAMES >> 20)));
        };
        left = rest;
        let name = std::str::from_utf8(name).ok()?;
        let section = symbol.section_index();
        Some(Ok(Named { name, address: symbol.address(), size: symbol.size(), kind: symbol.kind(), section }))
    })
}

/// Returns the bytes of each function in the sections that `wanted` selects, by its name.
pub(super) fn functions<'a>(
    file: &ElfFile64<'a, LittleEndian>,
    wanted: impl Fn(&ElfSection64<'a, '_, LittleEndian>) -> bool,
) -> Result<BTreeMap<&'a str, &'a [u8]>, BadCode> {
    let mut found = BTreeMap::new();
    for symbol in symbols(file) {
        let symbol = symbol?;
        if symbol.kind != SymbolKind::Text || symbol.size == 0 {
            continue;
        }
        let section = symbol.section.and_then(|index| file.section_by_index(index).ok());
        let Some(section) = section.filter(|section| wanted(section)) else { continue };
        // A symbol that extends beyond its section is broken and names no code.
        let code = section.data_range(symbol.address, symbol.size).unwrap_or_default();
        if let Some(code) = code {
            found.entry(symbol.name).or_insert(code);
        }
    }
    check_overlap(found.values().map(|code| code.len()), file.data().len())?;
    Ok(found)
}

/// Rejects functions that share their bytes with many others: decoding each of them would take time quadratic
/// in the file's size. Sharing is normal to a small extent, because some functions have several names.
fn check_overlap(lengths: impl Iterator<Item = usize>, file: usize) -> Result<(), BadCode> {
    const MOST_NAMES_EACH: usize = 4;
    let most = file.saturating_mul(MOST_NAMES_EACH);
    if lengths.fold(0, usize::saturating_add) > most {
        Err("functions that overlap".to_owned())
    } else {
        Ok(())
    }
}
