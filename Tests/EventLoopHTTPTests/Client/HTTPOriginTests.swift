import Testing

@testable import EventLoopHTTP

@Suite("HTTPOrigin")
struct HTTPOriginTests {
    @Test(
        "A URL of scheme, host and optional port is an origin",
        arguments: [
            ("https://fcm.googleapis.com", "fcm.googleapis.com", 443, "fcm.googleapis.com"),
            ("https://FCM.googleapis.com/", "fcm.googleapis.com", 443, "fcm.googleapis.com"),
            ("http://127.0.0.1:8080", "127.0.0.1", 8080, "127.0.0.1:8080"),
            ("http://[::1]:80", "::1", 80, "[::1]"),
            ("https://[::1]:8443", "::1", 8443, "[::1]:8443"),
        ]
    )
    func parses(url: String, host: String, port: Int, authority: String) throws {
        let origin = try #require(HTTPOrigin(url))
        #expect(origin.host == host)
        #expect(origin.port == port)
        #expect(origin.authority == authority)
    }

    @Test(
        "Any other URL is refused",
        arguments: [
            "", "fcm.googleapis.com", "ftp://a", "https://", "https://a/b", "https://a?x", "https://user@a",
            "https://a:", "https://a:0", "https://a:65536", "https://a:80a", "https://[::1", "https://a b",
            "https://a//", "https://\(String(repeating: "a", count: 264))",
        ]
    )
    func refuses(url: String) {
        #expect(HTTPOrigin(url) == nil)
    }
}

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
        "Any other authority is refused",
        arguments: [
            "", ":80", "a:", "a:65536", "a:123456", "a:8x", "a b", "a,b", "a/b", "u@a", "a?x", "a#x", "a%41", "[]",
            "[::1", "[::g]", "[::1]x", "::1", "ä",
        ]
    )
    func refuses(authority: String) {
        let isValid = HTTPAuthority.isValid(Array(authority.utf8).span)
        #expect(!isValid)
    }
}
