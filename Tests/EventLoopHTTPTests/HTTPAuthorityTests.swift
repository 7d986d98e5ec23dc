import Testing

@testable import EventLoopHTTP

@Suite("HTTPAuthority")
struct HTTPAuthorityTests {
    @Test(
        "A host with an optional port is accepted",
        arguments: ["a", "push.example.com", "a_b-c~d", "10.0.0.1:80", "[::1]", "[fe80::1]:443", "a:0", "a:65535"]
    )
    func accepts(authority: String) {
        let isValid = HTTPAuthority.isValid(Array(authority.utf8).span)
        #expect(isValid)
    }

    @Test(
        "Anything else is refused",
        arguments: [
            "", ":80", "a:", "a:65536", "a:123456", "a:8x", "a b", "a,b", "a/b", "u@a", "a?x", "a#x", "a%41", "[]",
            "[::1",
            "[::g]", "[::1]x", "::1", "ä",
        ]
    )
    func refuses(authority: String) {
        let isValid = HTTPAuthority.isValid(Array(authority.utf8).span)
        #expect(!isValid)
    }
}
