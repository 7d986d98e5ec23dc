import FCMModel
import Testing

@Suite("TopicName")
struct TopicNameTests {
    @Test("A name has 1 to 900 characters", arguments: [(0, false), (1, true), (899, true), (900, true), (901, false)])
    func length(count: Int, isValid: Bool) {
        let text = String(repeating: "t", count: count)
        #expect(TopicName(text)?.text == (isValid ? text : nil))
    }

    @Test("Of ASCII, letters, digits and five signs are allowed")
    func characters() {
        let allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~%"
        for byte in UInt8.min...0x7F {
            let character = String(Unicode.Scalar(byte))
            #expect((TopicName("a" + character + "z") != nil) == allowed.contains(character), "\(byte)")
        }
    }

    @Test(
        "Nothing beyond ASCII is allowed, however it looks",
        arguments: ["\u{E9}", "e\u{301}", "\u{212A}", "\u{FF41}", "\u{1F600}", "a\u{200B}", "\u{430}"]
    )
    func beyondASCII(text: String) {
        #expect(TopicName(text) == nil)
    }

    @Test("Nothing is decoded")
    func verbatim() {
        #expect(TopicName("a%20b%2F%")?.description == "a%20b%2F%")
    }

    @Test(
        "The prefix of a topic is compared byte by byte",
        arguments: [
            ("/topics/", true), ("/topics/a", true), ("/topics/\u{301}a", true), ("/topics", false),
            ("/Topics/a", false), ("topics/a", false), (" /topics/a", false), ("", false),
        ]
    )
    func prefix(to: String, isTopic: Bool) {
        #expect(TopicName.hasLegacyPrefix(to) == isTopic)
    }
}
