import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import EventLoopHTTP

/// Properties of every head that a server may answer with.
///
/// The first byte of an input chooses the request's method.
enum ResponseProperties {
    private enum Reading: Equatable {
        case waiting
        case refused
        case informational
        case accepted(status: Int, names: [String], values: [String], HTTPBodyFraming, keepsAlive: Bool)
    }

    private static let limits = HTTPHeadScanner.Limits(
        maxHeadBytes: 1_024,
        maxStartLineBytes: 256,
        maxFieldBytes: 256,
        maxFields: 16
    )
    private static let maxBodyBytes = 4_096

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let choice = input.first else { return }
        let method: HTTPRequest.Method = choice % 4 == 0 ? .head : .post
        let bytes = Array(input.dropFirst())
        let (whole, head) = Self.read([ByteBuffer(bytes: bytes)], method)
        for pieces in Pieces.cuts(of: bytes) {
            let (cut, _) = Self.read(pieces, method)
            // A fault may be found before the head is complete.
            guard cut != whole, !(cut == .refused && whole == .waiting) else { continue }
            throw FuzzFinding("\(cut) when the bytes come in pieces, \(whole) as a whole")
        }
        guard case .accepted(let status, let names, let values, let framing, let keepsAlive) = whole else { return }
        guard let naive = NaiveHead(head) else { throw FuzzFinding("accepted, though its lines are none") }
        try FuzzFinding.require((200...599).contains(status), "accepted with status \(status)")
        try naive.requireFields(names, values)
        try Self.check(framing, keepsAlive, of: naive, isBodiless: method == .head || status == 204 || status == 304)
        // SwiftNIO refuses a length that no integer holds, even if this response has no body.
        guard naive.values(of: "content-length").allSatisfy({ Int($0) != nil }) else { return }
        try Self.checkOtherParser(head, method, status: status, names: names)
    }

    private static func check(
        _ framing: HTTPBodyFraming,
        _ keepsAlive: Bool,
        of naive: NaiveHead,
        isBodiless: Bool
    ) throws(FuzzFinding) {
        let lengths = naive.values(of: "content-length")
        let codings = naive.values(of: "transfer-encoding")
        try FuzzFinding.require(lengths.count <= 1 && codings.count <= 1, "a repeated framing")
        if isBodiless {
            try FuzzFinding.requireEqual(framing, .none, "a body where none can be")
            return
        }
        try FuzzFinding.require(lengths.isEmpty || codings.isEmpty, "two framings")
        switch framing {
        case .none: try FuzzFinding.requireEqual(lengths.first.flatMap { Int($0) }, 0, "a lost body")
        case .length(let length):
            try FuzzFinding.requireEqual(lengths.first.flatMap { Int($0) }, length, "another length")
            try FuzzFinding.require((1...Self.maxBodyBytes).contains(length), "a length beyond the limit")
        case .chunked: try FuzzFinding.requireEqual(codings.first?.lowercased(), "chunked", "another coding")
        case .untilClose:
            try FuzzFinding.require(
                lengths.isEmpty && codings.isEmpty && !keepsAlive,
                "a connection kept without an end"
            )
        }
    }

    private static func read(_ pieces: [ByteBuffer], _ method: HTTPRequest.Method) -> (Reading, head: [UInt8]) {
        var scanner = HTTPHeadScanner(limits: Self.limits)
        var head = ByteBuffer()
        for var piece in pieces {
            switch scanner.scan(piece.readableBytesUInt8Span) {
            case .incomplete:
                head.writeBuffer(&piece)
            case .tooLarge, .startLineTooLong, .malformed:
                return (.refused, [])
            case .complete(let byteCount):
                guard var rest = piece.readSlice(length: byteCount) else { return (.refused, []) }
                head.writeBuffer(&rest)
                do throws(HTTPClientError.Code) {
                    let accepted = try HTTPHeadParser.response(head, to: method, maxBodyBytes: Self.maxBodyBytes)
                    guard let accepted else { return (.informational, []) }
                    let fields = accepted.head.fields.fields
                    let reading = Reading.accepted(
                        status: accepted.head.status.code,
                        names: fields.map { $0.name.rawName },
                        values: fields.map { $0.value },
                        accepted.framing,
                        keepsAlive: accepted.keepsAlive
                    )
                    return (reading, Array(head.readableBytesView))
                } catch {
                    return (.refused, [])
                }
            }
        }
        return (.waiting, [])
    }

    /// SwiftNIO's parser accepts the response and reads the same values.
    private static func checkOtherParser(
        _ head: [UInt8],
        _ method: HTTPRequest.Method,
        status: Int,
        names: [String]
    ) throws(FuzzFinding) {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPResponseDecoder()))
            let request = NIOHTTP1.HTTPRequestHead(
                version: .http1_1,
                method: method == .head ? .HEAD : .POST,
                uri: "/",
                headers: ["Host": "a"]
            )
            try channel.writeOutbound(HTTPClientRequestPart.head(request))
            try channel.writeInbound(ByteBuffer(bytes: head))
        } catch {
            // It refuses a tab after a length or coding, although white space may be a tab (RFC 9110, 5.6.3).
            let mayDiffer = head.contains(0x09) && RequestProperties.isFramed(names)
            try FuzzFinding.require(mayDiffer, "refused by another parser: \(error)")
            return
        }
        guard case .head(let theirs) = try? channel.readInbound(as: HTTPClientResponsePart.self) else {
            throw FuzzFinding("no head for another parser")
        }
        try FuzzFinding.requireEqual(status, Int(theirs.status.code), "another parser's status")
        try FuzzFinding.requireEqual(names, theirs.headers.map { $0.name }, "another parser's names")
    }
}
