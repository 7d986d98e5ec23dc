import NIOCore

@testable import EventLoopHTTP

/// Properties of every body, for each framing and for any division into pieces.
///
/// The first two bytes of an input choose framing and limits.
enum BodyProperties {
    private struct Reading: Equatable {
        var step: HTTPBodyReader.Step
        var body: [UInt8]
        /// The number of bytes that were not read.
        var leftBytes: Int
    }

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard input.count >= 2 else { return }
        let amount = Int(input[1])
        let framing: HTTPBodyFraming =
            switch input[0] % 4 {
            case 0: .none
            case 1: .length(amount)
            case 2: .untilClose
            default: .chunked
            }
        // Not always tight, so that the code behind the limits runs too.
        let isTight = input[0] >= 128
        let maxBodyBytes = isTight ? amount : 4_096
        let maxOverheadBytes = isTight ? 64 : 8_192
        let bytes = Array(input.dropFirst(2))

        func read(_ pieces: [ByteBuffer]) -> Reading {
            var reader = HTTPBodyReader(
                framing: framing,
                maxBodyBytes: max(maxBodyBytes, amount),
                maxOverheadBytes: maxOverheadBytes
            )
            var pending = ByteBuffer()
            var step = HTTPBodyReader.Step.incomplete
            var arrived = 0
            for piece in pieces where step == .incomplete {
                pending.writeImmutableBuffer(piece)
                arrived += piece.readableBytes
                step = reader.read(from: &pending)
            }
            let left = pending.readableBytes + bytes.count - arrived
            return Reading(step: step, body: Array(reader.body.readableBytesView), leftBytes: left)
        }

        let whole = read([ByteBuffer(bytes: bytes)])
        try FuzzFinding.require((0...bytes.count).contains(whole.leftBytes), "bytes came out of nothing")
        try FuzzFinding.require(whole.body.count <= max(maxBodyBytes, amount), "more data than allowed")
        for pieces in Pieces.cuts(of: bytes) where !pieces.isEmpty {
            let cut = read(pieces)
            try FuzzFinding.requireEqual(cut.step, whole.step, "another step when the bytes come in pieces")
            guard whole.step != .tooLarge else { continue }
            try FuzzFinding.requireEqual(cut, whole, "another body when the bytes come in pieces")
        }
        switch framing {
        case .none:
            try FuzzFinding.requireEqual(whole.leftBytes, bytes.count, "read a body that is none")
        case .length(let length):
            try FuzzFinding.requireEqual(whole.body, Array(bytes.prefix(length)), "not the bytes of the length")
            try FuzzFinding.requireEqual(whole.step == .complete, bytes.count >= length, "complete at the wrong place")
        case .untilClose:
            try FuzzFinding.require(whole.step != .complete && whole.step != .malformed, "ended by itself")
            try FuzzFinding.require(whole.step == .tooLarge || whole.body == bytes, "bytes got lost")
            try FuzzFinding.require(whole.step != .tooLarge || isTight || bytes.count > maxBodyBytes, "not too large")
        case .chunked:
            try Self.check(whole, of: bytes, isTight: isTight)
        }
    }

    private static func check(_ reading: Reading, of bytes: [UInt8], isTight: Bool) throws(FuzzFinding) {
        let naive = NaiveChunks.read(bytes)
        switch (reading.step, naive) {
        case (.complete, .complete(let data, let readBytes)):
            try FuzzFinding.requireEqual(reading.body, data, "other data")
            try FuzzFinding.requireEqual(reading.leftBytes, bytes.count - readBytes, "ended elsewhere")
        case (.tooLarge, .complete) where !isTight && bytes.count <= 4_096:
            throw FuzzFinding("too large, though within the limits")
        case (.tooLarge, _), (.incomplete, .incomplete), (.malformed, .malformed):
            break
        case (.malformed, .incomplete):
            // The fault was found before the end of the line, so no ending can complete this body.
            break
        case (.complete, _), (.incomplete, _), (.malformed, .complete):
            throw FuzzFinding("\(reading.step), but \(naive) when read naively")
        }
    }
}
