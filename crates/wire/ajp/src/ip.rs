//! IP addresses as text, for fields of a request.
//!
//! Every request has one or two of them, so IPv4 is written without the machinery of
//! formatting, and both kinds into memory on the stack.

use std::net::IpAddr;

/// An IP address as text, without an allocation.
#[derive(Clone, Copy, Debug)]
pub struct IpText {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl IpText {
    /// The length of the longest: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
    const MAX: usize = 45;

    /// Formats an address.
    #[must_use]
    pub fn new(ip: IpAddr) -> Self {
        let mut text = Self {
            bytes: [0; Self::MAX],
            len: 0,
        };
        match ip {
            IpAddr::V4(ip) => {
                for octet in ip.octets() {
                    // Four bytes are copied each time; what follows overwrites those beyond `len`.
                    let (digits, len) = OCTETS[usize::from(octet)];
                    text.bytes[text.len..text.len + 4].copy_from_slice(&digits);
                    text.len += len;
                }
                // No dot after the last.
                text.len -= 1;
            }
            IpAddr::V6(ip) => ip.to_string().bytes().for_each(|byte| text.push(byte)),
        }
        text
    }

    /// The text of the address.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn push(&mut self, byte: u8) {
        if let Some(slot) = self.bytes.get_mut(self.len) {
            *slot = byte;
            self.len += 1;
        }
    }
}

/// For each octet, its digits with a dot, and the length of both.
static OCTETS: [([u8; 4], usize); 256] = {
    let mut octets = [([b'.'; 4], 0); 256];
    let mut octet = 0;
    while octet < 256 {
        let digits = [octet / 100, octet / 10 % 10, octet % 10];
        // Without leading zeros.
        let mut index = match octet {
            0..10 => 2,
            10..100 => 1,
            _ => 0,
        };
        let (text, len) = &mut octets[octet];
        while index < 3 {
            text[*len] = b'0' + digits[index] as u8;
            *len += 1;
            index += 1;
        }
        // The dot is there already.
        *len += 1;
        octet += 1;
    }
    octets
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_octet_reads_as_it_prints() {
        for octet in 0..=u8::MAX {
            let ip = IpAddr::from([octet, 0, u8::MAX - octet, octet]);
            assert_eq!(IpText::new(ip).as_bytes(), ip.to_string().as_bytes());
        }
    }

    #[test]
    fn addresses_read_as_they_print() {
        for text in [
            "0.0.0.0",
            "127.0.0.1",
            "255.255.255.255",
            "::1",
            "2001:db8::8:800:200c:417a",
        ] {
            let ip: IpAddr = text.parse().expect("an address");
            assert_eq!(IpText::new(ip).as_bytes(), text.as_bytes());
        }
        let longest = IpAddr::from([0xffff_u16; 8]);
        assert_eq!(
            IpText::new(longest).as_bytes(),
            longest.to_string().as_bytes()
        );
    }
}
