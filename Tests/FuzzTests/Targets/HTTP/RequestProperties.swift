import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import EventLoopHTTP

/// Properties of all bytes that a client may send to the server.
enum RequestProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        let whole = RequestStream.read([ByteBuffer(bytes: input)])
        for request in whole.requests { try Self.check(request) }
        for pieces in Pieces.cuts(of: input) {
            let cut = RequestStream.read(pieces)
            try FuzzFinding.requireEqual(cut.requests, whole.requests, "other requests when the bytes come in pieces")
            guard cut.end != whole.end else { continue }
            switch (cut.end, whole.end) {
            case (.waiting, .refused), (.waiting, .waiting):
                throw FuzzFinding("pieces are waited for where the whole is refused")
            case (.refused, .refused):
                // The order in which several faults are found may depend on the pieces that have arrived.
                break
            case (.refused, .waiting):
                // The fault was found early, so no ending can complete this request.
                let ended = RequestStream.read([ByteBuffer(bytes: input + Array("\r\n\r\n".utf8))])
                try FuzzFinding.requireEqual(ended.requests, whole.requests, "a piece was refused, the whole is not")
            }
        }
    }

    private static func check(_ request: RequestStream.Request) throws(FuzzFinding) {
        guard let naive = NaiveHead(request.head) else { throw FuzzFinding("accepted, though its lines are none") }
        try naive.requireFields(request.names, request.values)
        let words = naive.startLine.split(separator: 0x20, omittingEmptySubsequences: false)
        try FuzzFinding.requireEqual(words.count, 3, "the words of the first line")
        try FuzzFinding.requireEqual(request.method, String(decoding: words[0], as: UTF8.self), "another method")
        let isHTTP10 = words[2].last == UInt8(ascii: "0")
        let hosts = naive.values(of: "host")
        try FuzzFinding.require(hosts.count == 1 || (isHTTP10 && hosts.isEmpty), "not one Host")
        try FuzzFinding.require(
            request.path.first == UInt8(ascii: "/") || request.path == [UInt8(ascii: "*")],
            "neither a path nor *"
        )
        // The absolute form may lack the path, with or without a query.
        let path = request.path.starts(with: Array("/?".utf8)) ? request.path.dropFirst() : request.path[...]
        try FuzzFinding.require(
            words[1].suffix(path.count) == path || request.path.count == 1,
            "a path that is not in the target"
        )

        let lengths = naive.values(of: "content-length")
        let codings = naive.values(of: "transfer-encoding")
        try FuzzFinding.require(lengths.count + codings.count <= 1, "more than one framing")
        switch request.framing {
        case .none:
            try FuzzFinding.require(codings.isEmpty && (lengths.first.map { Int($0) == 0 } ?? true), "a lost body")
            try FuzzFinding.require(request.body.isEmpty, "a body out of nothing")
        case .length(let length):
            try FuzzFinding.requireEqual(lengths.first.flatMap { Int($0) }, length, "another length")
            try FuzzFinding.requireEqual(request.body.count, length, "the body's length")
        case .chunked:
            try FuzzFinding.requireEqual(codings.first?.lowercased(), "chunked", "the coding")
            try FuzzFinding.require(!isHTTP10, "chunks for HTTP/1.0")
        case .untilClose:
            throw FuzzFinding("a request that ends with its connection")
        }
        try Self.checkOtherParser(request)
    }

    /// SwiftNIO's parser accepts the request and reads the same values.
    private static func checkOtherParser(_ request: RequestStream.Request) throws(FuzzFinding) {
        let hasTab = request.head.contains(0x09)
        guard let theirs = Self.otherHead(request.head) else {
            // It refuses a tab after a length or coding, although white space may be a tab (RFC 9110, 5.6.3).
            try FuzzFinding.require(hasTab && Self.isFramed(request.names), "refused by another parser")
            return
        }
        try FuzzFinding.requireEqual(request.method, theirs.method.rawValue, "another parser's method")
        try FuzzFinding.requireEqual(request.names, theirs.headers.map { $0.name }, "another parser's names")
        try FuzzFinding.requireEqual(
            request.values.map { Self.trimmed($0) },
            theirs.headers.map { Self.trimmed($0.value) },
            "another parser's values"
        )
        try FuzzFinding.require(
            !request.keepsAlive || theirs.isKeepAlive || hasTab,
            "kept open, against another parser"
        )
    }

    /// True if one of the fields frames a body.
    static func isFramed(_ names: [String]) -> Bool {
        names.contains { ["content-length", "transfer-encoding"].contains($0.lowercased()) }
    }

    /// Removes the white space around a value, of which the two parsers leave different parts.
    static func trimmed(_ value: String) -> Substring {
        let start = value.drop { $0 == " " || $0 == "\t" }
        return start.lastIndex { $0 != " " && $0 != "\t" }.map { start[...$0] } ?? ""
    }

    private static func otherHead(_ head: [UInt8]) -> NIOHTTP1.HTTPRequestHead? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
            try channel.writeInbound(ByteBuffer(bytes: head))
            guard case .head(let head) = try channel.readInbound(as: HTTPServerRequestPart.self) else { return nil }
            return head
        } catch {
            return nil
        }
    }
}
