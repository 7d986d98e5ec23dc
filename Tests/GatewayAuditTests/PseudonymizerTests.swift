import GatewayAudit
import GatewayTestKit
import Testing

@Suite("Pseudonymizer")
struct PseudonymizerTests {
    @Test("A pseudonym is the first half of an HMAC under a key derived from audit key and salt")
    func knownAnswer() {
        let pseudonymizer = Pseudonymizer(auditKey: Secret(bytes: Array(UInt8(0)..<32)), tenantSalt: Array("salt".utf8))
        #expect("\(pseudonymizer.pseudonym(of: "token-1"))" == "fb4790d24750946c223c96f40cec9adc")
    }

    @Test("A pseudonym depends only on the text, the tenant's salt and the audit key")
    func different() {
        let first = Pseudonymizer.sample()
        #expect(first.pseudonym(of: "token") == first.pseudonym(of: "token"))
        #expect(first.pseudonym(of: "token") == Pseudonymizer.sample().pseudonym(of: "token"))
        let texts = ["", "token", "token ", "Token", "tokentoken", "tok\u{0}en"]
        let pseudonymizers = [
            Pseudonymizer.sample("acme"), .sample("globex"), .sample(""),
            Pseudonymizer(auditKey: .sample("other audit key"), tenantSalt: Array("acme".utf8)),
        ]
        let pseudonyms = pseudonymizers.flatMap { pseudonymizer in texts.map(pseudonymizer.pseudonym(of:)) }
        #expect(Set(pseudonyms).count == texts.count * pseudonymizers.count)
    }

    @Test("A pseudonym is 16 bytes, written in hexadecimal")
    func bytes() {
        let bytes = Array(UInt8(0xF0)...0xFF)
        let pseudonym = Pseudonym(bytes: bytes)
        var appended: [UInt8] = [1]
        pseudonym.append(to: &appended)
        #expect(appended == [1] + bytes)
        #expect("\(pseudonym)" == "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff")
        #expect(Pseudonym(bytes: bytes + [1, 2, 3]) == pseudonym)
        #expect(Pseudonym(bytes: [1, 2] as [UInt8]).high == 0x0102_0000_0000_0000)
    }
}
