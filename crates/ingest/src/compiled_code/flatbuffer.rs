//! The few parts of a FlatBuffer (flatbuffers.dev, "Internals") that launch parameters of CUDA kernels are in.

/// A table inside a buffer.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Table<'a> {
    /// The root of a buffer that has this identifier.
    pub(super) fn root(buffer: &'a [u8], identifier: &[u8; 4]) -> Option<Self> {
        (buffer.get(4..8)? == identifier).then_some(())?;
        Some(Self { buffer, at: follow(buffer, 0)? })
    }

    /// Offset of a field; `None` if the table has none with this number.
    fn field(self, number: usize) -> Option<usize> {
        let signed = i64::from(i32::from_le_bytes(word(self.buffer, self.at)?));
        let vtable = usize::try_from(i64::try_from(self.at).ok()?.checked_sub(signed)?).ok()?;
        let size = usize::from(half(self.buffer, vtable)?);
        let entry = 4 + 2 * number;
        let offset = if entry + 2 <= size { half(self.buffer, vtable.checked_add(entry)?)? } else { 0 };
        (offset > 0).then_some(())?;
        self.at.checked_add(usize::from(offset))
    }

    /// Consecutive numbers of 32 bits: a scalar is one, a struct of scalars several.
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

    /// The tables of a vector. Its length is bounded by the buffer's.
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

/// Target of the offset at `at`.
fn follow(buffer: &[u8], at: usize) -> Option<usize> {
    at.checked_add(u32::from_le_bytes(word(buffer, at)?) as usize)
}
