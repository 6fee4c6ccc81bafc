// SPDX-License-Identifier: Apache-2.0
//! TLS, against a server that somebody else starts: TLS_URL, and its authority's certificate, TLS_CA.
use fairlock::{Client, Error};

#[test]
fn a_server_is_trusted_by_its_authority_alone() {
    let (Ok(url), Ok(authority)) = (std::env::var("TLS_URL"), std::env::var("TLS_CA")) else {
        eprintln!("no TLS_URL and TLS_CA");
        return;
    };
    let client = Client::builder(&url).ca_file(authority).open().unwrap();
    client.lock("door").acquire(None, None).unwrap().release().unwrap();
    let stranger = Client::new(url).unwrap();
    assert_eq!(stranger.lock("door").acquire(None, None).err(), Some(Error::Untrusted));
    assert!(!stranger.last_error().is_empty());
}
