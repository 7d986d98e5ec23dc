import EventLoopHTTP
import Testing

@Suite("HTTPOrigin")
struct HTTPOriginTests {
    @Test(
        "A URL of scheme, host and port is an origin",
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
        "Anything else is no origin",
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
