import FCMModel
import Testing

struct PercentEncodingTests {
    @Test(
        "Everything that means something in a path or query is escaped, and comes back",
        arguments: [
            ("news", "news"), ("a-b.c_d~e", "a-b.c_d~e"), ("a:b", "a%3Ab"), ("100%", "100%25"),
            ("a/b?c#d e", "a%2Fb%3Fc%23d%20e"),
            ("a+b&c=d", "a%2Bb%26c%3Dd"), ("ü", "%C3%BC"), ("a\r\nb", "a%0D%0Ab"), ("", ""),
        ]
    )
    func encoding(text: String, encoded: String) {
        #expect(PercentEncoding.encoded(text) == encoded)
        #expect(PercentEncoding.decoded(encoded.utf8) == text)
    }

    @Test("Escapes are undone once, in either case", arguments: [("%2525", "%25"), ("%c3%bc", "ü"), ("a%3ab", "a:b")])
    func once(encoded: String, text: String) {
        #expect(PercentEncoding.decoded(encoded.utf8) == text)
    }

    @Test("Broken escapes and bytes that are no text are nothing", arguments: ["%", "%2", "%G1", "a%", "%FF", "%C3"])
    func broken(encoded: String) {
        #expect(PercentEncoding.decoded(encoded.utf8) == nil)
    }

    @Test(
        "What would lead elsewhere is no device",
        arguments: [("", false), (".", false), ("..", false), ("/topics/news", false), ("...", true), ("a:b", true)]
    )
    func plausible(text: String, isPlausible: Bool) {
        #expect(RegistrationToken.isPlausible(text) == isPlausible)
    }

    @Test("A token is at most 4,096 bytes long")
    func length() {
        #expect(RegistrationToken.isPlausible(String(repeating: "x", count: 4_096)))
        #expect(!RegistrationToken.isPlausible(String(repeating: "x", count: 4_097)))
        #expect(!RegistrationToken.isPlausible(String(repeating: "ü", count: 2_049)))
    }
}
