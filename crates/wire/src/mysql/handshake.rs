//! The greeting of a server and the log-in.

use super::{
    Malformed, Scanned,
    packet::{PacketReader, push_lenenc, push_lenenc_bytes},
    packet::{begin_packet, finish_packet},
};

/// Abilities of both sides of a connection. The upper half are MariaDB's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapabilityFlags(pub u64);

impl CapabilityFlags {
    /// Set by MySQL; MariaDB omits it to announce extended flags.
    pub const LONG_PASSWORD: Self = Self(1);
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    pub const COMPRESS: Self = Self(1 << 5);
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// The protocol of 4.1 and later.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    pub const SSL: Self = Self(1 << 11);
    /// Status flags in OK packets.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// Scrambled passwords of 4.1 and later.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    pub const CONNECT_ATTRS: Self = Self(1 << 20);
    /// The log-in's authentication data may be longer than 255 bytes.
    pub const PLUGIN_AUTH_LENENC: Self = Self(1 << 21);
    /// Result sets end with an OK packet.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// MariaDB: column definitions are not repeated.
    pub const CACHE_METADATA: Self = Self(1 << 36);

    /// Returns true if all flags of `wanted` are set.
    pub fn has(self, wanted: Self) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    /// The flags of both sets.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The flags that are not in `less`.
    #[must_use]
    pub fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// The flags that dyno uses of a server's. [`Self::with`] adds TLS later.
    pub fn negotiate(server: Self) -> Scanned<Self> {
        let needed = Self::PROTOCOL_41.with(Self::SECURE_CONNECTION);
        if !server.has(needed) {
            return Err(Malformed("it is older than MySQL 4.1"));
        }
        let supported = needed
            .with(Self::LONG_PASSWORD)
            .with(Self::CONNECT_WITH_DB)
            .with(Self::LOCAL_FILES)
            .with(Self::TRANSACTIONS)
            .with(Self::MULTI_STATEMENTS)
            .with(Self::MULTI_RESULTS)
            .with(Self::PS_MULTI_RESULTS)
            .with(Self::PLUGIN_AUTH)
            .with(Self::CONNECT_ATTRS)
            .with(Self::PLUGIN_AUTH_LENENC)
            .with(Self::DEPRECATE_EOF)
            .with(Self::CACHE_METADATA);
        let mut agreed = Self(supported.0 & server.0);
        if !agreed.has(Self::DEPRECATE_EOF) {
            // Both came with the same servers: one combination fewer.
            agreed = agreed.without(Self::CACHE_METADATA);
        }
        Ok(agreed)
    }
}

/// The first packet of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// Without the `5.5.5-` of MariaDB.
    pub version: String,
    pub capabilities: CapabilityFlags,
    /// Random bytes that scramble passwords.
    pub scramble: Vec<u8>,
    /// The expected authentication method.
    pub plugin: String,
}

impl Greeting {
    /// Reads version 10 of the handshake.
    pub fn parse(payload: &[u8]) -> Scanned<Self> {
        let mut reader = PacketReader::new(payload);
        if reader.u8()? != 10 {
            return Err(Malformed("its greeting is not version 10 of the handshake"));
        }
        let version = String::from_utf8_lossy(reader.until_nul()?).into_owned();
        let _connection_id = reader.u32()?;
        let mut scramble = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let mut flags = u64::from(reader.u16()?);
        let mut plugin = String::from("mysql_native_password");
        if !reader.rest().is_empty() {
            let _charset = reader.u8()?;
            let _status = reader.u16()?;
            flags |= u64::from(reader.u16()?) << 16;
            let scramble_length = usize::from(reader.u8()?);
            reader.bytes(6)?;
            let extended = reader.u32()?;
            if flags & CapabilityFlags::LONG_PASSWORD.0 == 0 {
                flags |= u64::from(extended) << 32;
            }
            if flags & CapabilityFlags::SECURE_CONNECTION.0 != 0 {
                // At least 13, the last of them NUL.
                let second_length =
                    scramble_length.saturating_sub(8).max(13).min(reader.rest().len());
                let part = reader.bytes(second_length)?;
                scramble.extend_from_slice(part.strip_suffix(&[0]).unwrap_or(part));
            }
            if flags & CapabilityFlags::PLUGIN_AUTH.0 != 0 {
                // Some old servers forget the NUL.
                let name_bytes = reader.rest();
                let name = name_bytes.split(|&byte| byte == 0).next().unwrap_or(name_bytes);
                plugin = String::from_utf8_lossy(name).into_owned();
            }
        }
        let version = version.strip_prefix("5.5.5-").unwrap_or(&version).to_string();
        let capabilities = CapabilityFlags(flags);
        Ok(Greeting { version, capabilities, scramble, plugin })
    }

    pub fn product_name(&self) -> &'static str {
        if self.version.to_ascii_lowercase().contains("mariadb") { "MariaDB" } else { "MySQL" }
    }
}

/// The client's answer to the greeting.
#[derive(Debug)]
pub struct Login<'a> {
    pub capabilities: CapabilityFlags,
    pub user: &'a str,
    /// Empty for none.
    pub database: &'a str,
    /// The authentication method of `response`.
    pub plugin: &'a str,
    pub response: &'a [u8],
    /// Names and values for the server's table of connections.
    pub attributes: &'a [(&'a str, &'a str)],
}

/// utf8mb4_general_ci, known to every server of this protocol.
const UTF8MB4: u8 = 45;

impl Login<'_> {
    /// Appends the request for TLS. Returns the next sequence number.
    pub fn push_tls_request(&self, out: &mut Vec<u8>, sequence: u8) -> u8 {
        let start = begin_packet(out);
        self.push_head(out);
        finish_packet(out, start, sequence)
    }

    /// Appends the log-in. Returns the next sequence number.
    pub fn push(&self, out: &mut Vec<u8>, sequence: u8) -> u8 {
        let start = begin_packet(out);
        self.push_head(out);
        push_nul_text(out, self.user);
        if self.capabilities.has(CapabilityFlags::PLUGIN_AUTH_LENENC) {
            push_lenenc_bytes(out, self.response);
        } else {
            // Only methods with the capability have longer responses.
            out.push(self.response.len() as u8);
            out.extend_from_slice(self.response);
        }
        if self.capabilities.has(CapabilityFlags::CONNECT_WITH_DB) {
            push_nul_text(out, self.database);
        }
        if self.capabilities.has(CapabilityFlags::PLUGIN_AUTH) {
            push_nul_text(out, self.plugin);
        }
        if self.capabilities.has(CapabilityFlags::CONNECT_ATTRS) {
            let mut attributes = Vec::new();
            for (name, value) in self.attributes {
                push_lenenc_bytes(&mut attributes, name.as_bytes());
                push_lenenc_bytes(&mut attributes, value.as_bytes());
            }
            push_lenenc(out, attributes.len() as u64);
            out.extend_from_slice(&attributes);
        }
        finish_packet(out, start, sequence)
    }

    fn push_head(&self, out: &mut Vec<u8>) {
        let flags = self.capabilities.0;
        out.extend_from_slice(&(flags as u32).to_le_bytes());
        // The largest packet: a gigabyte, the highest limit of any server.
        out.extend_from_slice(&(1_u32 << 30).to_le_bytes());
        out.push(UTF8MB4);
        out.extend_from_slice(&[0; 19]);
        out.extend_from_slice(&((flags >> 32) as u32).to_le_bytes());
    }
}

/// A NUL inside would end the field early.
fn push_nul_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|&byte| byte != 0));
    out.push(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(version: &str, flags: u64) -> Vec<u8> {
        let mut out = vec![10];
        push_nul_text(&mut out, version);
        out.extend_from_slice(&77_u32.to_le_bytes());
        out.extend_from_slice(b"12345678\0");
        out.extend_from_slice(&(flags as u16).to_le_bytes());
        out.push(45);
        out.extend_from_slice(&[2, 0]);
        out.extend_from_slice(&((flags >> 16) as u16).to_le_bytes());
        out.push(21);
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&((flags >> 32) as u32).to_le_bytes());
        out.extend_from_slice(b"abcdefghijkl\0");
        push_nul_text(&mut out, "caching_sha2_password");
        out
    }

    #[test]
    fn reads_greetings_of_both_products() {
        let every_flag = u64::MAX;
        let mysql = Greeting::parse(&greeting("9.7.4", every_flag)).unwrap();
        assert_eq!(mysql.product_name(), "MySQL");
        assert_eq!(mysql.scramble, b"12345678abcdefghijkl");
        assert_eq!(mysql.plugin, "caching_sha2_password");
        assert!(!mysql.capabilities.has(CapabilityFlags::CACHE_METADATA));
        let maria = greeting("5.5.5-10.11.19-MariaDB-0+deb12u1", every_flag - 1);
        let maria = Greeting::parse(&maria).unwrap();
        assert_eq!(maria.version, "10.11.19-MariaDB-0+deb12u1");
        assert_eq!(maria.product_name(), "MariaDB");
        let agreed = CapabilityFlags::negotiate(maria.capabilities).unwrap();
        assert!(agreed.has(CapabilityFlags::CACHE_METADATA.with(CapabilityFlags::DEPRECATE_EOF)));
        assert!(!agreed.has(CapabilityFlags::SSL) && !agreed.has(CapabilityFlags::LONG_PASSWORD));
        assert!(CapabilityFlags::negotiate(CapabilityFlags(0)).is_err());
    }

    #[test]
    fn truncated_greetings_are_errors_or_old_servers_but_never_panics() {
        let complete = greeting("9.7.4", u64::MAX);
        for end in 0..complete.len() {
            let _ = Greeting::parse(&complete[..end]);
        }
        assert!(Greeting::parse(&complete[..20]).is_err());
        assert!(Greeting::parse(&[9, b'x', 0]).is_err());
    }

    #[test]
    fn the_log_in_has_its_fields_in_order() {
        let capabilities = CapabilityFlags::negotiate(CapabilityFlags(u64::MAX)).unwrap();
        let login = Login {
            capabilities,
            user: "me\0evil",
            database: "db",
            plugin: "p",
            response: b"xyz",
            attributes: &[("program_name", "dyno")],
        };
        let mut out = Vec::new();
        assert_eq!(login.push(&mut out, 1), 2);
        assert_eq!(out[..4], [(out.len() - 4) as u8, 0, 0, 1]);
        assert_eq!(out[4..8], (capabilities.0 as u32).to_le_bytes());
        assert_eq!(out[32..36], ((capabilities.0 >> 32) as u32).to_le_bytes());
        assert_eq!(&out[36..], b"me\0\x03xyzdb\0p\0\x12\x0cprogram_name\x04dyno");
        // At most a gigabyte, utf8mb4_general_ci.
        assert_eq!(out[8..13], [0, 0, 0, 0x40, 45]);
        assert_eq!(out[13..32], [0; 19]);
        let mut tls = Vec::new();
        assert_eq!(login.push_tls_request(&mut tls, 1), 2);
        assert_eq!(tls.len(), 36);
    }
    #[test]
    fn a_log_in_without_capabilities_leaves_fields_out() {
        for (capabilities, expected) in [
            (CapabilityFlags::PROTOCOL_41, &b"me\0\x03xyz"[..]),
            (CapabilityFlags::CONNECT_WITH_DB, &b"me\0\x03xyzdb\0"[..]),
            (CapabilityFlags::PLUGIN_AUTH, &b"me\0\x03xyzp\0"[..]),
            (CapabilityFlags::CONNECT_ATTRS, &b"me\0\x03xyz\x04\x01a\x01b"[..]),
        ] {
            let attributes = &[("a", "b")];
            let login = Login {
                capabilities,
                user: "me",
                database: "db",
                plugin: "p",
                response: b"xyz",
                attributes,
            };
            let mut out = Vec::new();
            login.push(&mut out, 1);
            assert_eq!(out.split_off(36), expected);
        }
    }

    #[test]
    fn a_greeting_is_read_as_its_flags_say() {
        let secure = parse_greeting(CapabilityFlags::SECURE_CONNECTION);
        assert_eq!(secure.scramble, b"12345678abcdefghijkl");
        assert_eq!(secure.plugin, "mysql_native_password");
        assert_eq!(parse_greeting(CapabilityFlags::PROTOCOL_41).scramble, b"12345678");
        let with_plugin = parse_greeting(CapabilityFlags::PLUGIN_AUTH);
        assert_eq!(
            (with_plugin.scramble, with_plugin.plugin),
            (b"12345678".to_vec(), "abcdefghijkl".to_owned())
        );
        let maria = CapabilityFlags::CACHE_METADATA.with(CapabilityFlags::PLUGIN_AUTH);
        assert_eq!(parse_greeting(maria).capabilities, maria);
        assert_eq!(
            parse_greeting(maria.with(CapabilityFlags::LONG_PASSWORD)).capabilities.0,
            (1 << 19) + 1
        );
    }

    fn parse_greeting(flags: CapabilityFlags) -> Greeting {
        Greeting::parse(&greeting("9.7.4", flags.0)).unwrap()
    }

    #[test]
    fn flags_are_those_of_the_protocol() {
        let mysql = [
            (CapabilityFlags::LONG_PASSWORD, 0x1),
            (CapabilityFlags::CONNECT_WITH_DB, 0x8),
            (CapabilityFlags::COMPRESS, 0x20),
            (CapabilityFlags::LOCAL_FILES, 0x80),
            (CapabilityFlags::PROTOCOL_41, 0x200),
            (CapabilityFlags::SSL, 0x800),
            (CapabilityFlags::TRANSACTIONS, 0x2000),
            (CapabilityFlags::SECURE_CONNECTION, 0x8000),
            (CapabilityFlags::MULTI_STATEMENTS, 0x1_0000),
            (CapabilityFlags::MULTI_RESULTS, 0x2_0000),
            (CapabilityFlags::PS_MULTI_RESULTS, 0x4_0000),
            (CapabilityFlags::PLUGIN_AUTH, 0x8_0000),
            (CapabilityFlags::CONNECT_ATTRS, 0x10_0000),
            (CapabilityFlags::PLUGIN_AUTH_LENENC, 0x20_0000),
            (CapabilityFlags::DEPRECATE_EOF, 0x100_0000),
            (CapabilityFlags::CACHE_METADATA, 0x10_0000_0000),
        ];
        for (flag, bits) in mysql {
            assert_eq!(flag.0, bits);
        }
        let every_flag = CapabilityFlags(u64::MAX);
        assert_eq!(CapabilityFlags::negotiate(every_flag).unwrap().0, 0x10_013f_a289);
        // A cache of columns needs the new ends of rows.
        let old = every_flag.without(CapabilityFlags::DEPRECATE_EOF);
        assert_eq!(CapabilityFlags::negotiate(old).unwrap().0, 0x3f_a289);
        assert!(
            CapabilityFlags::negotiate(every_flag.without(CapabilityFlags::PROTOCOL_41)).is_err()
        );
    }
}
