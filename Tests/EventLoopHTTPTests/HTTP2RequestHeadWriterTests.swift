import HTTPTypes
import NIOCore
import NIOHPACK
import Testing

@testable import EventLoopHTTP

@Suite("HTTP2RequestHeadWriter")
struct HTTP2RequestHeadWriterTests {
    private static func lines(_ block: HPACKHeaders) -> [String] {
        block.map { "\($0.name): \($0.value)" }
    }

    @Test("Pseudo-headers come first, names are in lower case, and fields of a connection are left out")
    func block() throws {
        var writer = HTTP2RequestHeadWriter(scheme: "https", authority: "a:1")
        let proxy = try #require(HTTPField.Name("Proxy-Connection"))
        let host = try #require(HTTPField.Name("Host"))
        let mixed = try #require(HTTPField.Name("X-Mixed"))
        let request = HTTPClientRequest(
            method: .post,
            path: "x y",
            headers: [mixed: "A: b", proxy: "close", host: "b", .te: "x", mixed: ""]
        )
        let block = writer.block(for: request)
        #expect(
            Self.lines(block) == [
                ":method: POST", ":scheme: https", ":authority: a:1", ":path: /x%20y", "x-mixed: A: b", "x-mixed: ",
                "content-length: 0",
            ]
        )
    }

    @Test("A request that differs in anything is not mistaken for the one before")
    func repeats() {
        var writer = HTTP2RequestHeadWriter(scheme: "https", authority: "a")
        let requests = [
            HTTPClientRequest(method: .get, path: "/"),
            HTTPClientRequest(method: .get, path: "/"),
            HTTPClientRequest(method: .get, path: "/b"),
            HTTPClientRequest(method: .delete, path: "/b"),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"]),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"], body: ByteBuffer(string: "d")),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"], body: ByteBuffer(string: "ef")),
        ]
        for request in requests {
            let block = writer.block(for: request)
            var fresh = HTTP2RequestHeadWriter(scheme: "https", authority: "a")
            let expected = fresh.block(for: request)
            #expect(Self.lines(block) == Self.lines(expected))
        }
    }
}
