import GatewayCore
import Testing

@Suite("AdminToken")
struct AdminTokenTests {
    private let token = AdminToken(Secret("correct-horse-battery"))

    @Test("The token itself matches")
    func match() {
        #expect(self.token.matches(Array("correct-horse-battery".utf8)[...]))
        #expect(self.token.matches(Array("Bearer correct-horse-battery".utf8)[7...]))
    }

    @Test(
        "Nothing else does",
        arguments: [
            "", "correct-horse-batter", "correct-horse-battery ", "Correct-horse-battery", "correct-horse-battery\u{0}",
        ]
    )
    func mismatch(text: String) {
        #expect(!self.token.matches(Array(text.utf8)[...]))
    }

    @Test("Neither the token nor anything that could be compared with it shows")
    func redacted() {
        var dumped = ""
        dump(self.token, to: &dumped)
        #expect(!dumped.contains("correct-horse-battery"))
        #expect(!"\(self.token)".contains("correct-horse-battery"))
    }
}
