//! The resident memory of this process that is not its own.

use rustix::mm::{Advice, madvise};
use std::fs;
use std::ops::Range;

/// Gives back pages of code and constants, which only the start of the program has needed: the kernel maps 64 kB around
/// each that is touched. What is needed later comes back from the page cache, by a fault each.
#[expect(unsafe_code, reason = "only the kernel can unmap pages")]
pub fn give_back_pages() {
    let text = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    for range in unchanged_files(&text) {
        let start = std::ptr::with_exposed_provenance_mut(range.start);
        // SAFETY: these pages hold what their file holds, and the process can't write to them: the next read of one finds
        // the same bytes. A refusal leaves them where they are.
        let _ = unsafe { madvise(start, range.len(), Advice::LinuxDontNeed) };
    }
}

/// Addresses of what is mapped from files for reading alone, without a page that differs from its file (relocations, a
/// debugger's breakpoints).
fn unchanged_files(smaps: &str) -> impl Iterator<Item = Range<usize>> {
    let mut mapping = None;
    smaps.lines().filter_map(move |line| {
        if let Some(found) = file_of(line) {
            mapping = found;
        }
        let is_unchanged =
            line.strip_prefix("Anonymous:").is_some_and(|size| size.trim() == "0 kB");
        mapping.take_if(|_| is_unchanged)
    })
}

/// Of the first line of a mapping: its addresses, if it is a file that can only be read. `None` for other lines.
fn file_of(line: &str) -> Option<Option<Range<usize>>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let range = address(start)?..address(end)?;
    let is_for_reading = words.next().is_some_and(|rights| matches!(rights, "r-xp" | "r--p"));
    // Behind offset, device and inode. `[vdso]` is no file.
    let is_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    Some((is_for_reading && is_file).then_some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 r--p 00000000 fe:00 7 /usr/bin/dyno
Rss: 8 kB
Anonymous: 0 kB
VmFlags: rd mr mw me sd
3000-5000 r-xp 00002000 fe:00 7 /usr/bin/a program
Anonymous:             0 kB
5000-6000 r--p 00004000 fe:00 7 /usr/bin/dyno
Anonymous:             4 kB
6000-7000 rw-p 00005000 fe:00 7 /usr/bin/dyno
Anonymous:             0 kB
7000-8000 r--s 00000000 fe:00 9 /tmp/shared
Anonymous:             0 kB
8000-9000 r--p 00000000 00:00 0 
Anonymous:             0 kB
9000-a000 r-xp 00000000 00:00 0 [vdso]
Anonymous:             0 kB
";

    #[test]
    fn only_unchanged_files_are_given_back() {
        let given: Vec<_> = unchanged_files(SMAPS).collect();
        assert_eq!(given, [0x1000..0x3000, 0x3000..0x5000]);
        assert_eq!(unchanged_files("").count(), 0);
    }

    #[test]
    fn the_program_goes_on_with_fewer_pages() {
        let files_kb = || -> u64 {
            let status = fs::read_to_string("/proc/self/status").expect("its own");
            let line =
                status.lines().find(|line| line.starts_with("RssFile:")).expect("Linux has it");
            line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse().ok()).expect("a number")
        };
        let before_kb = files_kb();
        give_back_pages();
        let after_kb = files_kb();
        assert!(after_kb < before_kb, "{before_kb} and then {after_kb} kB");
    }
}
