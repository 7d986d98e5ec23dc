import NIOCore

@testable import RedisClient

/// Properties of all bytes that a server may send, for any division into pieces.
///
/// The first byte of an input chooses the limits.
enum RESPProperties {
    private struct Reading: Equatable {
        /// As text, since NaN is not equal to itself.
        var values: [String] = []
        var error: RESPError?
        var isBetweenReplies = true
    }

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let choice = input.first else { return }
        let isTight = choice & 1 == 1
        let limits =
            isTight
            ? RESPParser.Limits(depth: 2, stringBytes: 8, lineBytes: 16, elements: 6, replyBytes: 12)
            : RESPParser.Limits()
        let bytes = Array(input.dropFirst())
        var largest = 0

        func read(_ pieces: [ByteBuffer]) -> Reading {
            var parser = RESPParser(limits: limits)
            var pending = ByteBuffer()
            var reading = Reading()
            do throws(RESPError) {
                for piece in pieces {
                    pending.writeImmutableBuffer(piece)
                    while let value = try parser.next(from: &pending) {
                        reading.values.append("\(value)")
                        largest = max(largest, Self.count(value))
                    }
                }
                reading.isBetweenReplies = parser.isBetweenReplies && pending.readableBytes == 0
            } catch {
                reading.error = error
            }
            return reading
        }

        let whole = read([ByteBuffer(bytes: bytes)])
        try FuzzFinding.require(largest <= 2 * limits.elements + 1, "more elements than allowed")
        for pieces in Pieces.cuts(of: bytes) {
            try FuzzFinding.requireEqual(read(pieces), whole, "another reading when the bytes come in pieces")
        }
        // A reply after complete replies is read as if it came first.
        guard whole.error == nil, whole.isBetweenReplies else { return }
        let more = read([ByteBuffer(bytes: bytes + Array(":1\r\n".utf8))])
        let expected = whole.values + ["\(RESPValue.integer(1))"]
        try FuzzFinding.requireEqual(more.values, expected, "the next reply is another")
    }

    private static func count(_ value: RESPValue) -> Int {
        switch value {
        case .array(let elements), .map(let elements), .push(let elements):
            elements.reduce(1) { $0 + Self.count($1) }
        case .status, .error, .integer, .bytes, .null, .boolean, .double, .bigNumber:
            1
        }
    }
}
