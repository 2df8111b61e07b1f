use std::hash::{BuildHasher, Hasher, RandomState};

use http::Method;

use crate::admission::{Operation, TenantId};

/// Digests of idempotency keys and of what they stand for.
///
/// Two halves of SipHash, which this process keys for itself: whoever does not know the key cannot make two operations
/// look alike, and 128 bits are never alike by chance. The digests are compared with one another and with nothing else,
/// so that they need not outlive the process.
#[derive(Debug, Default)]
pub(crate) struct Digests(RandomState);

impl Digests {
    /// The operation that `key` names for `tenant`, if it is done by sending `body`.
    pub(crate) fn operation(
        &self,
        tenant: TenantId,
        key: &[u8],
        (method, path): (&Method, &str),
        body: &[u8],
    ) -> Operation {
        Operation {
            key: self.of(&[&tenant.0.to_le_bytes(), key]),
            body: self.of(&[method.as_str().as_bytes(), path.as_bytes(), body]),
        }
    }

    fn of(&self, parts: &[&[u8]]) -> u128 {
        let half = |which: u8| {
            let mut hasher = self.0.build_hasher();
            hasher.write_u8(which);
            for part in parts {
                // with its length, so that no part can borrow from the next
                hasher.write_usize(part.len());
                hasher.write(part);
            }
            hasher.finish()
        };
        u128::from(half(0)) << 64 | u128::from(half(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_its_tenant_its_key_and_its_body() {
        let digests = Digests::default();
        let of = |tenant, key: &str, path, body: &str| {
            digests.operation(TenantId(tenant), key.as_bytes(), (&Method::POST, path), body.as_bytes())
        };
        let one = of(1, "k", "/a", "b");
        assert_eq!(of(1, "k", "/a", "b"), one);
        assert_eq!(of(1, "k", "/a", "c").key, one.key);
        assert_ne!(of(1, "k", "/a", "c").body, one.body);
        assert_ne!(of(2, "k", "/a", "b").key, one.key);
        assert_ne!(of(1, "l", "/a", "b").key, one.key);
        assert_ne!(of(1, "k", "/ab", "").body, of(1, "k", "/a", "b").body, "no part borrows from the next");
        assert_ne!(one.key >> 64, one.key & u128::from(u64::MAX), "the halves differ");
    }
}
