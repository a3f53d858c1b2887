//! Detects the kind of code in a file, and finds the code objects inside a module.

use std::io::{Cursor, Read};

use super::{BadCode, CodeObject, amdgpu, cpu, elf_library, ptx, spirv};
use object::elf;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader, SectionHeader};

const ELF: &[u8] = b"\x7fELF";
const ZIP: &[u8] = b"PK\x03\x04";
/// Offset of the first entry's name in a ZIP archive (APPNOTE 4.3.7).
const ZIP_NAME_AT: usize = 30;
/// SPIR-V's magic number, little-endian.
const SPIRV: &[u8] = b"\x03\x02\x23\x07";

/// Maximum number of entries in one module: IREE links a module's kernels into one executable per target, or
/// keeps one executable per kernel.
const MOST_ENTRIES: usize = 10_000;
/// Maximum number of bytes in all entries of one module; weights are in separate files or in `module.fb`,
/// which is not counted.
const MOST_BYTES: u64 = 256 << 20;

/// Returns whether these bytes begin like compiled code.
pub(crate) fn is_code(bytes: &[u8]) -> bool {
    // An ELF file needs at least its header, and an archive at least its first entry's name, which is
    // `module.fb` in IREE's files.
    let elf = bytes.starts_with(ELF) && bytes.len() >= size_of::<elf::FileHeader64<object::LittleEndian>>();
    let module = bytes.starts_with(ZIP)
        && bytes.get(ZIP_NAME_AT..).is_some_and(|name| name.starts_with(MODULE.as_bytes()));
    elf || module || bytes.starts_with(SPIRV) || ptx::is_ptx(bytes)
}

/// Returns the code objects of a file.
pub(super) fn objects(bytes: &[u8]) -> Result<Vec<CodeObject>, BadCode> {
    if bytes.starts_with(ZIP) {
        Ok(entries(bytes)?.into_iter().flat_map(|entry| entry.objects).collect())
    } else {
        Ok(vec![object(bytes)?])
    }
}

/// An executable of a module.
pub(super) struct Entry<'a> {
    /// The executable as the runtime loads it.
    pub(super) content: &'a [u8],
    pub(super) objects: Vec<CodeObject>,
}

fn object(bytes: &[u8]) -> Result<CodeObject, BadCode> {
    if bytes.starts_with(ELF) {
        // `object` rejects 32-bit and big-endian files here; no kernel compiler writes them.
        let header = elf::FileHeader64::<object::LittleEndian>::parse(bytes).map_err(|e| e.to_string())?;
        let machine = header.e_machine.get(object::LittleEndian);
        let file = ElfFile64::<object::LittleEndian>::parse(bytes).map_err(|e| e.to_string())?;
        let behind = bytes.get(end(&file) as usize..).unwrap_or_default();
        if [ELF, SPIRV].iter().any(|magic| memchr::memmem::find(behind, magic).is_some()) {
            return Err("there is more code after the first ELF file".to_owned());
        }
        match machine {
            elf::EM_AMDGPU => amdgpu::read(&file),
            elf::EM_X86_64 => elf_library::read(&file, "x86-64", cpu::count_x86),
            elf::EM_AARCH64 => elf_library::read(&file, "aarch64", cpu::count_aarch64),
            other => Err(format!(
                "code for ELF machine {other} is not supported (supported: AMDGPU, x86-64, AArch64)"
            )),
        }
    } else if bytes.starts_with(SPIRV) {
        spirv::read(bytes)
    } else {
        ptx::read(bytes)
    }
}

/// Returns the end of an ELF file: the end of its headers, segments and sections, whichever is last.
fn end(file: &ElfFile64<'_, object::LittleEndian>) -> u64 {
    let endian = object::LittleEndian;
    let header = file.elf_header();
    let table = |at: u64, count: u16, size: u16| at.saturating_add(u64::from(count) * u64::from(size));
    let sections = table(header.e_shoff(endian), header.e_shnum(endian), header.e_shentsize(endian));
    let segments = file.elf_program_headers().iter().map(|segment| segment.file_range(endian));
    let ranges = segments.chain(file.elf_section_table().iter().filter_map(|found| found.file_range(endian)));
    ranges.map(|(at, size)| at.saturating_add(size)).fold(sections, u64::max)
}

/// Returns the executables of an IREE module, which is an uncompressed ZIP archive of `module.fb` and one
/// file per executable.
pub(super) fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, BadCode> {
    let mut archive =
        zip::ZipArchive::new(Cursor::new(bytes)).map_err(|e| format!("broken ZIP archive: {e}"))?;
    if archive.len() > MOST_ENTRIES {
        return Err(format!("module has {} entries; the limit is {MOST_ENTRIES}", archive.len()));
    }
    if archive.index_for_name(MODULE).is_none() {
        return Err(format!("archive has no `{MODULE}`, so it is not an IREE module"));
    }
    if archive.offset() != 0 {
        return Err("there is data before the archive".to_owned());
    }
    let mut listed = Vec::new();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|e| format!("broken ZIP archive: {e}"))?;
        let start = entry.data_start().unwrap_or(u64::MAX);
        listed.push((entry.header_start(), start.saturating_add(entry.compressed_size())));
    }
    listed.push((archive.central_directory_start(), u64::MAX));
    listed.sort_unstable();
    // The runtime finds its executables by their offsets, including those that the directory does not list.
    let mut at = 0;
    for (start, end) in listed {
        let between = bytes.get(at as usize..start as usize).ok_or("entries of the archive overlap")?;
        if between.windows(ZIP.len()).any(|window| window == ZIP) {
            return Err("the archive has an entry that its directory does not list".to_owned());
        }
        at = end;
    }
    let mut left = MOST_BYTES;
    let mut entries = Vec::new();
    let mut read_at = Vec::new();
    let mut module_at = u64::MAX;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|e| format!("broken ZIP archive: {e}"))?;
        let start = entry.data_start().unwrap_or(u64::MAX);
        if entry.name().is_ok_and(|name| name == MODULE) {
            module_at = start;
            continue;
        }
        read_at.push((start, entry.size()));
        let name = entry.name().map_err(|e| format!("broken ZIP archive: {e}"))?.into_owned();
        if entry.compression() != zip::CompressionMethod::Stored {
            return Err(format!(
                "entry {name:?} of the module is compressed; IREE stores entries as they are"
            ));
        }
        let mut content = Vec::new();
        let begin = (&mut entry).take(BEGINNING).read_to_end(&mut content);
        begin.map_err(|e| format!("entry {name:?}: {e}"))?;
        if is_constant(&name) && !is_executable(&content) {
            continue;
        }
        entry
            .by_ref()
            .take((left + 1).saturating_sub(BEGINNING))
            .read_to_end(&mut content)
            .map_err(|e| format!("entry {name:?}: {e}"))?;
        left = left
            .checked_sub(content.len() as u64)
            .ok_or_else(|| format!("executables are larger than {} MiB together", MOST_BYTES >> 20))?;
        let objects = executable(&content).map_err(|why| format!("entry {name:?}: {why}"))?;
        let at = start as usize;
        let content = bytes.get(at..at.saturating_add(content.len())).ok_or("broken ZIP archive")?;
        entries.push(Entry { content, objects });
    }
    for content in embedded(bytes, module_at, &read_at)? {
        let objects = executable(content).map_err(|why| format!("executable inside `{MODULE}`: {why}"))?;
        entries.push(Entry { content, objects });
    }
    Ok(entries)
}

/// Returns the executables inside `module.fb`, where IREE puts those smaller than 4 KiB. The runtime finds
/// its data by the offsets in `module.fb`, not by the archive's directory. Therefore a module is rejected if
/// its runtime would load code from anywhere except `module.fb` and `entries`, the offset and length in the
/// file of each entry that was read. The fields are those of IREE's `bytecode_module_def.fbs`, which are the
/// same in 3.7 and 3.13.
fn embedded<'a>(bytes: &'a [u8], start: u64, entries: &[(u64, u64)]) -> Result<Vec<&'a [u8]>, BadCode> {
    const SEGMENTS: usize = 9;
    const EMBEDDED: usize = 2;
    const OFFSET: usize = 3;
    const LENGTH: usize = 4;
    /// External data begins at a multiple of this alignment.
    const ALIGNMENT: u64 = 64;
    let bad = || format!("`{MODULE}` is not a bytecode module");
    let module = usize::try_from(start).ok().and_then(|start| bytes.get(start..)).ok_or_else(bad)?;
    let (size, rest) = module.split_first_chunk::<4>().ok_or_else(bad)?;
    let size = u32::from_le_bytes(*size);
    let buffer = rest.get(..size as usize).ok_or_else(bad)?;
    let root = Table::root(buffer, b"IREE").ok_or_else(bad)?;
    let external = start + (4 + u64::from(size)).next_multiple_of(ALIGNMENT);
    let mut found = Vec::new();
    for segment in root.tables(SEGMENTS) {
        found.extend(segment.bytes(EMBEDDED).filter(|data| is_executable(data)));
        if found.iter().map(|data| data.len()).sum::<usize>() > buffer.len() {
            return Err(format!("executables inside `{MODULE}` overlap"));
        }
        let number = |field| {
            let [low, high] = segment.numbers::<2>(field).unwrap_or_default();
            u64::from(high) << 32 | u64::from(low)
        };
        let at = (external.saturating_add(number(OFFSET)), number(LENGTH));
        if at.1 > 0 && !entries.contains(&at) {
            return Err(format!("`{MODULE}` refers to data that is not an entry of the archive"));
        }
    }
    Ok(found)
}

/// Number of bytes that show the kind of an entry.
const BEGINNING: u64 = 4096;

/// Returns whether an entry is named like a module's constants. IREE 3.13 stores constants of 4 KiB and more
/// next to `module.fb`.
fn is_constant(name: &str) -> bool {
    name.starts_with("_const") && name.ends_with(".bin")
}

/// Returns whether data begins like an executable of any driver, with or without a header.
fn is_executable(data: &[u8]) -> bool {
    /// Identifiers of executables for Metal, WebGPU and VMVX, which can't be read here.
    const OTHERS: [&[u8; 4]; 3] = [b"MTL1", b"WGSL", b"IREE"];
    let identified = [0, 4, 8].into_iter().filter_map(|at| data.get(at..at + 4));
    let by_identifier =
        |found: &[u8]| Kind::from_identifier(found).is_some() || OTHERS.iter().any(|it| *it == found);
    [ELF, SPIRV, b"MZ", b"\xcf\xfa\xed\xfe", b"\0asm"].iter().any(|magic| data.starts_with(magic))
        || identified.into_iter().any(by_identifier)
        || ptx::is_ptx(data)
}

/// IREE's own part of a module, which includes its constants.
const MODULE: &str = "module.fb";

/// Returns the code inside an executable. IREE wraps GPU code in a FlatBuffer whose identifier names the
/// driver. The code is found by its magic number and by the length before it, which is where FlatBuffers
/// store a vector's length, so that no schema of a particular release is needed.
fn executable(content: &[u8]) -> Result<Vec<CodeObject>, BadCode> {
    if content.starts_with(ELF) {
        return Ok(vec![object(content)?]);
    }
    // The FlatBuffer's identifier follows its first offset. Newer releases of IREE put their own header in
    // front, which begins with the identifier.
    let kind = |at: usize| content.get(at..at + 4).and_then(Kind::from_identifier);
    let found = match kind(0).or_else(|| kind(4)) {
        Some(Kind::Hip) => vectors(content, ELF, 1)?,
        Some(Kind::Vulkan) => vectors(content, SPIRV, 4)?,
        Some(Kind::Cuda) => ptx::starts(content).iter().filter_map(|&at| vector(content, at, 1)).collect(),
        None => {
            let start = String::from_utf8_lossy(content.get(..8).unwrap_or(content));
            return Err(format!(
                "executable of an unsupported kind, beginning with {start:?} (supported: HIP1, CDA1, VKE1, ELF)"
            ));
        }
    };
    if found.is_empty() {
        return Err("executable without code".to_owned());
    }
    let mut objects: Vec<CodeObject> = found.into_iter().map(object).collect::<Result<_, _>>()?;
    for object in &mut objects {
        add_launches(object, content);
    }
    Ok(objects)
}

/// Adds the launch parameters of the kernels of a CUDA executable, from the fields of `ExportDef` in IREE's
/// `cuda_executable_def.fbs` (the same in 3.7 and 3.13). If a release orders the fields differently, the
/// launches stay unchanged, because the block sizes would not match those in the code.
fn add_launches(object: &mut CodeObject, content: &[u8]) {
    const EXPORTS: usize = 0;
    const KERNEL_NAME: usize = 1;
    const BLOCK: usize = 2;
    const SHARED_MEMORY: usize = 3;
    let Some(source) = &mut object.ptx else { return };
    // Newer releases put a header of this size in front.
    const HEADER: usize = 64;
    let headless = [0, HEADER].into_iter().filter_map(|at| Table::root(content.get(at..)?, b"CDA1"));
    for export in headless.flat_map(|root| root.tables(EXPORTS)) {
        let name = export.bytes(KERNEL_NAME).and_then(|name| std::str::from_utf8(name).ok());
        let launch = name.and_then(|name| source.launches.get_mut(name));
        let (Some(launch), Some(block)) = (launch, export.numbers::<3>(BLOCK)) else { continue };
        let threads = block.into_iter().try_fold(1, |product: u64, size| product.checked_mul(size.into()));
        if launch.dynamic_shared.is_none() && launch.threads == threads {
            // FlatBuffers omit values that are zero.
            let [shared] = export.numbers(SHARED_MEMORY).unwrap_or_default();
            launch.dynamic_shared = Some(shared.into());
        }
    }
}

/// The driver for which an executable was compiled.
enum Kind {
    Hip,
    Vulkan,
    Cuda,
}

impl Kind {
    fn from_identifier(identifier: &[u8]) -> Option<Self> {
        match identifier {
            b"HIP1" => Some(Self::Hip),
            b"VKE1" => Some(Self::Vulkan),
            b"CDA1" => Some(Self::Cuda),
            _ => None,
        }
    }
}

/// Returns the vectors that begin with `magic`, in elements of `size` bytes. Code without a valid length is
/// an error, because code that is skipped would not be judged.
fn vectors<'a>(content: &'a [u8], magic: &[u8], size: usize) -> Result<Vec<&'a [u8]>, BadCode> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = content.get(at..).and_then(|rest| memchr::memmem::find(rest, magic)) {
        let start = at + next;
        let vector = vector(content, start, size).ok_or("code whose length is not valid")?;
        found.push(vector);
        at = start + vector.len();
    }
    Ok(found)
}

/// Returns the vector whose first element is at `start`.
fn vector(content: &[u8], start: usize, size: usize) -> Option<&[u8]> {
    let length = content.get(start.checked_sub(4)?..start)?;
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let end = start.checked_add(length.checked_mul(size)?)?;
    content.get(start..end).filter(|vector| !vector.is_empty())
}

// The few FlatBuffer structures (flatbuffers.dev, "Internals") that hold the launch parameters of CUDA
// kernels.

/// A table inside a buffer.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// Returns the root of a buffer that has this identifier.
    fn root(buffer: &'a [u8], identifier: &[u8; 4]) -> Option<Self> {
        (buffer.get(4..8)? == identifier).then_some(())?;
        Some(Self { buffer, at: follow(buffer, 0)? })
    }

    /// Returns the offset of a field; `None` if the table has no field with this number.
    fn field(self, number: usize) -> Option<usize> {
        let signed = i64::from(i32::from_le_bytes(word(self.buffer, self.at)?));
        let vtable = usize::try_from(i64::try_from(self.at).ok()?.checked_sub(signed)?).ok()?;
        let size = usize::from(half(self.buffer, vtable)?);
        let entry = 4 + 2 * number;
        let offset = if entry + 2 <= size { half(self.buffer, vtable.checked_add(entry)?)? } else { 0 };
        (offset > 0).then_some(())?;
        self.at.checked_add(usize::from(offset))
    }

    /// Returns consecutive 32-bit numbers: one for a scalar, several for a struct of scalars.
    pub(super) fn numbers<const N: usize>(self, number: usize) -> Option<[u32; N]> {
        let at = self.field(number)?;
        let mut found = [0; N];
        for (index, found) in found.iter_mut().enumerate() {
            *found = u32::from_le_bytes(word(self.buffer, at.checked_add(4 * index)?)?);
        }
        Some(found)
    }

    pub(super) fn bytes(self, number: usize) -> Option<&'a [u8]> {
        let at = follow(self.buffer, self.field(number)?)?;
        let length = u32::from_le_bytes(word(self.buffer, at)?) as usize;
        let start = at.checked_add(4)?;
        self.buffer.get(start..start.checked_add(length)?)
    }

    /// Returns the tables of a vector, whose length is limited by the buffer's.
    pub(super) fn tables(self, number: usize) -> impl Iterator<Item = Self> {
        let start = self.field(number).and_then(|field| follow(self.buffer, field));
        let length = start.and_then(|at| word(self.buffer, at)).map_or(0, u32::from_le_bytes) as usize;
        let length = length.min(self.buffer.len() / 4);
        (0..length).filter_map(move |index| {
            let entry = start?.checked_add(4 + 4 * index)?;
            Some(Self { buffer: self.buffer, at: follow(self.buffer, entry)? })
        })
    }
}

fn word(buffer: &[u8], at: usize) -> Option<[u8; 4]> {
    buffer.get(at..at.checked_add(4)?)?.try_into().ok()
}

fn half(buffer: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(buffer.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

/// Returns the target of the offset at `at`.
fn follow(buffer: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(word(buffer, at)?) as usize)
}
