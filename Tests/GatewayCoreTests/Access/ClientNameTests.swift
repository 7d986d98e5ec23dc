import GatewayCore
import Testing

@Suite("ClientName")
struct ClientNameTests {
    @Test(
        "DNS names are compared in lower case, URIs as they are",
        arguments: [
            ("orders.internal", "orders.internal"), ("Orders.Internal", "orders.internal"), ("a", "a"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"), ("_svc.example", "_svc.example"),
            ("10.0.0.7", "10.0.0.7"), (String(repeating: "a", count: 63), String(repeating: "a", count: 63)),
            ("spiffe://example.org/ns/shop/sa/orders", "spiffe://example.org/ns/shop/sa/orders"),
            ("SPIFFE://Example.org/A", "SPIFFE://Example.org/A"), ("urn:uuid:1", "urn:uuid:1"),
            ("a+b-c.d:e", "a+b-c.d:e"),
        ]
    )
    func accepted(text: String, name: String) {
        #expect(ClientName(text)?.text == name)
    }

    @Test(
        "What is neither is refused",
        arguments: [
            "", " ", ".", "a.", ".a", "a..b", "*.example.org", "*", "-a", "a-", "a b", "a/b", "bücher.example", "a\0b",
            "a@example.org", String(repeating: "a", count: 64),
            Array(repeating: "abcdefg", count: 32).joined(separator: "."),
            ":", "a:", ":b", "1a:b", "-a:b", "a_b:c", "spiffe://a b", "spiffe://ä", "spiffe://a\n", "a\0:b",
            "u:" + String(repeating: "x", count: 511),
        ]
    )
    func refused(text: String) {
        #expect(ClientName(text) == nil)
    }

    @Test("A URI may have 512 bytes")
    func longest() {
        #expect(ClientName("u:" + String(repeating: "x", count: 510)) != nil)
    }
}
