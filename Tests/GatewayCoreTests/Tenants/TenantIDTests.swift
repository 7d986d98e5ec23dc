import GatewayCore
import Testing

@Suite("TenantID")
struct TenantIDTests {
    @Test(
        "Names of 1 to 63 lower-case letters, digits and inner or trailing hyphens are accepted",
        arguments: ["a", "0", "acme", "acme-eu", "a-", "a--b", "0-9", String(repeating: "z", count: 63)]
    )
    func accepted(text: String) throws {
        let id = try #require(TenantID(text))
        #expect(id.text == text)
        #expect("\(id)" == text)
    }

    @Test(
        "Any other text is refused",
        arguments: [
            "", "-", "-a", "A", "aB", "a_b", "a.b", "a/b", "a b", "a%20", "é", "a\u{301}", "a\u{0}", "../a", "a\n",
            String(repeating: "z", count: 64),
        ]
    )
    func refused(text: String) {
        #expect(TenantID(text) == nil)
    }

    @Test("Names sort in byte order")
    func order() throws {
        let ids = try ["b", "a-b", "a", "ab"].map { try #require(TenantID($0)) }
        #expect(ids.sorted().map(\.text) == ["a", "a-b", "ab", "b"])
    }
}
