//! A PDF whose small objects are compressed.
//!
//! The tags that tell screen readers what is a table and what a heading are thousands of objects, which the compiler
//! writes as plain text: half of a paper's bytes. PDF 1.5 has object streams for them.

use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::io::Write;

/// Objects of one stream: a reader unpacks all of them to get at one.
const OBJECTS_OF_STREAM: usize = 200;

/// Where an object stands: in the file, or in a stream at a place.
enum Place {
    At(usize),
    In(usize, usize),
}

/// The same document in fewer bytes; as it is where it is not written as expected.
pub(crate) fn packed(pdf: Vec<u8>) -> Vec<u8> {
    Document::of(&pdf).map_or_else(|| pdf.clone(), |document| document.write())
}

struct Document<'a> {
    /// The line with the version.
    head: &'a [u8],
    /// Number and what stands between `obj` and `endobj`, by their places in the file.
    objects: Vec<(usize, &'a [u8])>,
    /// Entries of the trailer behind its size.
    trailer: &'a [u8],
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|part| part == what)
}

fn rfind(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).rposition(|part| part == what)
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

impl<'a> Document<'a> {
    fn of(pdf: &'a [u8]) -> Option<Document<'a>> {
        let end = rfind(pdf, b"startxref")?;
        let table_at = number(pdf.get(end + 9..)?.split(|byte| *byte == b'%').next()?)?;
        let table = pdf.get(table_at..end)?.strip_prefix(b"xref\n")?;
        let (table, trailer) = table.split_at(find(table, b"trailer\n")?);
        let trailer = trailer.strip_prefix(b"trailer\n")?.trim_ascii();
        let trailer = trailer.strip_prefix(b"<</Size ")?.strip_suffix(b">>")?;
        let trailer = trailer.trim_ascii_start();
        let behind = trailer.iter().position(|byte| !byte.is_ascii_digit())?;
        let mut lines = table.split(|byte| *byte == b'\n');
        // One section that begins with object 0.
        lines.next()?.strip_prefix(b"0 ")?;
        let mut places = Vec::new();
        for (object, line) in lines.filter(|line| !line.is_empty()).enumerate() {
            match line.trim_ascii_end().strip_suffix(b" 00000 n") {
                Some(place) => places.push((number(place)?, object)),
                None if line.trim_ascii_end().ends_with(b" f") => {}
                None => return None,
            }
        }
        places.sort_unstable();
        let ends = places.iter().skip(1).map(|(place, _)| *place).chain([table_at]);
        let mut objects = Vec::new();
        for ((from, object), to) in places.iter().zip(ends) {
            let head = format!("{object} 0 obj\n");
            let whole = pdf.get(*from..to)?.strip_prefix(head.as_bytes())?;
            objects.push((*object, whole[..rfind(whole, b"endobj")?].trim_ascii_end()));
        }
        let head = &pdf[..places.first()?.0];
        Some(Document { head, objects, trailer: &trailer[behind..] })
    }

    fn write(&self) -> Vec<u8> {
        let mut out = self.head.to_vec();
        let mut next = self.objects.iter().map(|(object, _)| object + 1).max().unwrap_or(1);
        let mut places: Vec<(usize, Place)> = Vec::new();
        let is_stream = |object: &&(usize, &[u8])| object.1.ends_with(b"endstream");
        for (object, body) in self.objects.iter().filter(is_stream) {
            places.push((*object, Place::At(out.len())));
            put(&mut out, *object, body);
        }
        let plain: Vec<_> = self.objects.iter().filter(|object| !is_stream(object)).collect();
        for chunk in plain.chunks(OBJECTS_OF_STREAM) {
            let (mut index, mut bodies) = (String::new(), Vec::new());
            for (place, (object, body)) in chunk.iter().enumerate() {
                index += &format!("{object} {} ", bodies.len());
                bodies.extend_from_slice(body);
                bodies.push(b'\n');
                places.push((*object, Place::In(next, place)));
            }
            let entries = format!("/Type/ObjStm/N {}/First {}", chunk.len(), index.len());
            places.push((next, Place::At(out.len())));
            put(&mut out, next, &stream(&entries, &[index.as_bytes(), &bodies].concat()));
            next += 1;
        }
        self.write_index(out, places, next)
    }

    /// The stream in place of the table of objects and the trailer.
    fn write_index(
        &self,
        mut out: Vec<u8>,
        mut places: Vec<(usize, Place)>,
        own: usize,
    ) -> Vec<u8> {
        let at = out.len();
        places.push((own, Place::At(at)));
        let mut rows = vec![[0_u8; 7]; own + 1];
        // Object 0 is free, and the last of the free ones.
        rows[0] = [0, 0, 0, 0, 0, 0xff, 0xff];
        for (object, place) in places {
            let (kind, first, second) = match place {
                Place::At(at) => (1, at, 0),
                Place::In(stream, place) => (2, stream, place),
            };
            rows[object][0] = kind;
            rows[object][1..5].copy_from_slice(&(first as u32).to_be_bytes());
            rows[object][5..].copy_from_slice(&(second as u16).to_be_bytes());
        }
        let trailer = String::from_utf8_lossy(self.trailer);
        let entries = format!("/Type/XRef/W[1 4 2]/Size {}{trailer}", own + 1);
        put(&mut out, own, &stream(&entries, rows.as_flattened()));
        out.extend_from_slice(format!("startxref\n{at}\n%%EOF").as_bytes());
        out
    }
}

fn put(out: &mut Vec<u8>, object: usize, body: &[u8]) {
    out.extend_from_slice(format!("{object} 0 obj\n").as_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(b"\nendobj\n");
}

fn stream(entries: &str, text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let written = encoder.write_all(text).and_then(|()| encoder.finish());
    let bytes = written.unwrap_or_default();
    let head = format!("<<{entries}/Filter/FlateDecode/Length {}>>\nstream\n", bytes.len());
    [head.as_bytes(), &bytes, b"\nendstream"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::ZlibDecoder;
    use std::io::Read;

    /// Objects as a compiler writes them, with a stream among them.
    fn plain(objects: &[&str]) -> Vec<u8> {
        let mut out = b"%PDF-1.7\n%\xff\xff\n".to_vec();
        let mut places = Vec::new();
        for (place, body) in objects.iter().enumerate() {
            places.push(out.len());
            put(&mut out, place + 1, body.as_bytes());
        }
        let table_at = out.len();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        places.iter().for_each(|place| table += &format!("{place:010} 00000 n \n"));
        table += &format!("trailer\n<</Size {}/Root 1 0 R/ID[(a)(b)]>>\n", objects.len() + 1);
        table += &format!("startxref\n{table_at}\n%%EOF");
        out.extend_from_slice(table.as_bytes());
        out
    }

    /// What a stream at this place holds, and its dictionary.
    fn inside(pdf: &[u8], at: usize) -> (String, Vec<u8>) {
        let whole = &pdf[at..];
        let begin = find(whole, b"stream\n").expect("a stream");
        let head = String::from_utf8_lossy(&whole[..begin]).into_owned();
        let mut text = Vec::new();
        ZlibDecoder::new(&whole[begin + 7..]).read_to_end(&mut text).expect("unpacked");
        (head, text)
    }

    /// The body of an object, as a reader gets at it.
    fn object(pdf: &[u8], wanted: usize) -> String {
        let end = rfind(pdf, b"startxref").expect("an end");
        let at = number(pdf[end + 9..].split(|byte| *byte == b'%').next().expect("a line"));
        let (_, rows) = inside(pdf, at.expect("a number"));
        let row = &rows[wanted * 7..][..7];
        let first = u32::from_be_bytes(row[1..5].try_into().expect("four bytes")) as usize;
        let second = u16::from_be_bytes(row[5..].try_into().expect("two bytes")) as usize;
        if row[0] == 1 {
            let whole = &pdf[first..];
            return String::from_utf8_lossy(&whole[..find(whole, b"\nendobj").expect("its end")])
                .into_owned();
        }
        let of_stream = u32::from_be_bytes(rows[first * 7 + 1..][..4].try_into().expect("four"));
        let (head, text) = inside(pdf, of_stream as usize);
        let value = |name: &str| {
            let behind = head.split(name).nth(1).expect("an entry").trim_start();
            let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<usize>().expect("a number")
        };
        let index = String::from_utf8_lossy(&text[..value("/First")]).into_owned();
        let index: Vec<usize> =
            index.split_whitespace().map(|it| it.parse().expect("it")).collect();
        assert_eq!((index[second * 2], index.len()), (wanted, value("/N") * 2));
        let from = value("/First") + index[second * 2 + 1];
        let body = String::from_utf8_lossy(&text[from..]).into_owned();
        body.split('\n').next().expect("a line").to_owned()
    }

    #[test]
    fn every_object_is_found_again() {
        let tag = |number: usize| format!("<</Type/StructElem/S/Span/P 3634 0 R/K[{number}]>>");
        let mut objects = vec!["<</Type/Catalog>>".to_owned()];
        objects.push("<</Length 3>>\nstream\nabc\nendstream".to_owned());
        objects.extend((3..=450).map(tag));
        let texts: Vec<&str> = objects.iter().map(String::as_str).collect();
        let before = plain(&texts);
        let after = packed(before.clone());
        assert!(after.len() * 4 < before.len(), "{} of {}", after.len(), before.len());
        assert!(after.starts_with(b"%PDF-1.7\n%\xff\xff\n"));
        for (place, text) in texts.iter().enumerate() {
            let found = object(&after, place + 1);
            assert!(found.ends_with(text), "object {}: {found}", place + 1);
        }
        let at = rfind(&after, b"/Type/XRef").expect("the index");
        let head = String::from_utf8_lossy(&after[at..at + 80]).into_owned();
        // Three streams of objects, and the index itself.
        assert!(head.contains("/Size 455/Root 1 0 R/ID[(a)(b)]"), "{head}");
    }

    #[test]
    fn what_is_written_otherwise_stays_as_it_is() {
        let whole = plain(&["<</Type/Catalog>>"]);
        for other in [b"%PDF-1.7\nnothing".to_vec(), whole[..whole.len() - 30].to_vec(), Vec::new()]
        {
            assert_eq!(packed(other.clone()), other);
        }
        let packed_once = packed(whole);
        assert_eq!(packed(packed_once.clone()), packed_once, "an index that is a stream");
    }
}
