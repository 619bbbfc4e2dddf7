//! Assembles files byte by byte, without the crate's own writer: files that old and other servers
//! wrote.

use store::pack::{Element, Listpack};

/// When the first field of a hash expires: a time of 48 bits, in the year 2042.
const EARLIEST_FIELD: [u8; 8] = [1, 2, 3, 4, 20, 2, 0, 0];

/// A file in the making.
pub struct Assembler(Vec<u8>);

impl Assembler {
    /// Begins with a magic such as `REDIS0003`.
    pub fn new(magic: &str) -> Assembler {
        Assembler(magic.as_bytes().to_vec())
    }

    /// Adds bytes as they are.
    pub fn raw(mut self, bytes: &[u8]) -> Assembler {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a string shorter than 16 kB, which is not encoded.
    pub fn string(self, text: &[u8]) -> Assembler {
        let length = length(text.len());
        self.raw(&length).raw(text)
    }

    /// Adds a type and a key: its value follows.
    pub fn key(self, kind: u8, key: &str) -> Assembler {
        self.raw(&[kind]).string(key.as_bytes())
    }

    /// Adds a name and a text.
    pub fn aux(self, name: &str, text: &str) -> Assembler {
        self.raw(&[250]).string(name.as_bytes()).string(text.as_bytes())
    }

    /// Adds only the mark of the end: files before version 5.
    pub fn end_without_checksum(self) -> Vec<u8> {
        self.raw(&[255]).0
    }

    /// Adds the mark of the end and the checksum.
    pub fn end(self) -> Vec<u8> {
        let mut file = self.raw(&[255]).0;
        let checksum = base::crc::crc64(&file);
        file.extend_from_slice(&checksum.to_le_bytes());
        file
    }
}

/// A length below 16384.
pub fn length(value: usize) -> Vec<u8> {
    match u8::try_from(value) {
        Ok(short @ ..64) => vec![short],
        _ => vec![0x40 | (value >> 8) as u8, value as u8],
    }
}

/// A zipmap of short fields and values, each followed by unused bytes.
pub fn zipmap(pairs: &[(&str, &str)]) -> Vec<u8> {
    let mut map = vec![pairs.len() as u8];
    for (index, (field, value)) in pairs.iter().enumerate() {
        map.push(field.len() as u8);
        map.extend_from_slice(field.as_bytes());
        let unused = index as u8 % 3;
        map.extend_from_slice(&[value.len() as u8, unused]);
        map.extend_from_slice(value.as_bytes());
        map.extend(std::iter::repeat_n(b'?', unused.into()));
    }
    map.push(0xff);
    map
}

/// A ziplist of texts shorter than 64 bytes; small integers among them are stored as such.
pub fn ziplist(texts: &[&str]) -> Vec<u8> {
    let mut list = vec![0; 10];
    let (mut tail, mut previous) = (10, 0);
    for text in texts {
        tail = list.len();
        list.push(previous);
        match text.parse::<i16>() {
            Ok(small @ 0..=12) => list.push(0xf1 + small as u8),
            Ok(number) => {
                list.push(0xc0);
                list.extend_from_slice(&number.to_le_bytes());
            }
            Err(_) => {
                list.push(text.len() as u8);
                list.extend_from_slice(text.as_bytes());
            }
        }
        previous = (list.len() - tail) as u8;
    }
    list.push(0xff);
    let size = list.len() as u32;
    list[..4].copy_from_slice(&size.to_le_bytes());
    list[4..8].copy_from_slice(&(tail as u32).to_le_bytes());
    list[8..10].copy_from_slice(&(texts.len() as u16).to_le_bytes());
    list
}

/// A listpack of texts; integers among them are stored as such.
pub fn listpack(texts: &[&str]) -> Vec<u8> {
    let elements = texts.iter().map(|text| match base::num::parse_i64(text.as_bytes()) {
        Some(number) => Element::Int(number),
        None => Element::Str(text.as_bytes()),
    });
    Listpack::from_elements(elements).as_bytes().to_vec()
}

/// An intset of 16-bit integers, which ascend.
pub fn intset(members: &[i16]) -> Vec<u8> {
    let mut set = 2u32.to_le_bytes().to_vec();
    set.extend_from_slice(&(members.len() as u32).to_le_bytes());
    set.extend(members.iter().flat_map(|member| member.to_le_bytes()));
    set
}

/// Small, and it has everything that a file may have.
pub fn museum() -> Vec<u8> {
    let module: &[u8] = b"\x81\x45\xe2\x52\x38\xdf\x91\x2c\x03";
    let pairs = ["a", "1", "b", "2"];
    Assembler::new("REDIS0012")
        .aux("redis-ver", "7.4.0")
        .raw(b"\xf5")
        .string(b"#!lua name=x\n")
        .raw(b"\xf7")
        .raw(module)
        .raw(b"\x02\x01\x05\x03abc\x00")
        .raw(b"\xfe\x05\xfb\x20\x01\xf4\x52\x34\x02\x01")
        .raw(b"\xfc")
        .raw(&[1; 8])
        .raw(b"\xf8\x40\x64")
        .key(0, "raw")
        .string(b"text")
        .raw(b"\xf9\x07")
        .key(0, "number")
        .raw(b"\xc1\x39\x30")
        .key(0, "compressed")
        .raw(b"\xc3\x07\x1b\x02abc\xe0\x0f\x02")
        .key(1, "list")
        .raw(b"\x02\x01a\x01b")
        .key(2, "set")
        .raw(b"\x02\x01a\x01b")
        .key(3, "zset")
        .raw(b"\x02\x01a\x031.5\x01b\xff")
        .key(4, "hash")
        .raw(b"\x01\x01f\x01v")
        .key(5, "binary")
        .raw(b"\x01\x01a")
        .raw(&1.5f64.to_le_bytes())
        .key(7, "module")
        .raw(module)
        .raw(b"\x04abcdefgh\x00")
        .key(9, "zipmap")
        .string(&zipmap(&[("a", "1"), ("b", "2")]))
        .key(10, "ziplist")
        .string(&ziplist(&pairs))
        .key(11, "intset")
        .string(&intset(&[-5, 1, 300]))
        .key(12, "zset ziplist")
        .string(&ziplist(&pairs))
        .key(13, "hash ziplist")
        .string(&ziplist(&pairs))
        .key(14, "quicklist")
        .raw(b"\x01")
        .string(&ziplist(&pairs))
        .key(15, "stream")
        .raw(b"\x01")
        .string(&[1; 16])
        .string(&listpack(&["1", "0", "1", "f", "0", "2", "0", "0", "v", "4"]))
        .raw(b"\x01\x81\x01\x01\x01\x01\x01\x01\x01\x01\x81\x01\x01\x01\x01\x01\x01\x01\x01\x00")
        .key(16, "hash listpack")
        .string(&listpack(&pairs))
        .key(17, "zset listpack")
        .string(&listpack(&pairs))
        .key(18, "nodes")
        .raw(b"\x02\x02")
        .string(&listpack(&pairs))
        .raw(b"\x01\x05plain")
        .key(20, "set listpack")
        .string(&listpack(&pairs))
        .key(24, "expiring")
        .raw(&EARLIEST_FIELD)
        .raw(b"\x01\x01\x01f\x01v")
        .key(25, "expiring listpack")
        .raw(&EARLIEST_FIELD)
        .string(&listpack(&["f", "v", "5000"]))
        .end()
}
