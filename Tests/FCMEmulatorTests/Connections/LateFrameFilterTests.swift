import NIOCore
import NIOEmbedded
import NIOHTTP2
import Testing

@testable import FCMEmulator

struct LateFrameFilterTests {
    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

    private static func frame(_ stream: UInt32, _ payload: [UInt8], type: UInt8 = 0) -> [UInt8] {
        let length = payload.count
        return [UInt8(length >> 16), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF), type, 0]
            + (0..<4).map { UInt8(stream >> (24 - 8 * $0) & 0xFF) } + payload
    }

    /// Returns the bytes that pass if they arrive in pieces of this size.
    private static func passed(
        _ before: [UInt8],
        _ after: [UInt8],
        last: HTTP2StreamID,
        pieces: Int
    ) throws -> [UInt8] {
        let filter = LateFrameFilter()
        let channel = EmbeddedChannel(handler: filter)
        func send(_ bytes: [UInt8]) throws {
            var rest = bytes[...]
            while !rest.isEmpty {
                try channel.writeInbound(ByteBuffer(bytes: rest.prefix(pieces)))
                rest = rest.dropFirst(pieces)
            }
        }
        try send(before)
        filter.drop(after: last)
        try send(after)
        var passed: [UInt8] = []
        while let buffer = try channel.readInbound(as: ByteBuffer.self) { passed += buffer.readableBytesView }
        _ = try channel.finish()
        return passed
    }

    @Test(
        "Frames of later streams are dropped and all others pass, in pieces of any size",
        arguments: [1, 2, 5, 9, 24, 1_000]
    )
    func drops(pieces: Int) throws {
        let before = Self.preface + Self.frame(0, [1, 2, 3], type: 4) + Self.frame(1, [7]) + Self.frame(5, [8, 9])
        let kept = Self.frame(0, Array(repeating: 6, count: 8), type: 6) + Self.frame(5, [10]) + Self.frame(3, [])
        let late = Self.frame(7, Array(repeating: 1, count: 300), type: 1)
        let after =
            late + Self.frame(0, Array(repeating: 6, count: 8), type: 6) + Self.frame(5, [10]) + late
            + Self.frame(3, []) + Self.frame(0x7FFF_FFFF, [1])
        #expect(try Self.passed(before, after, last: 5, pieces: pieces) == before + kept)
        #expect(try Self.passed(before, after, last: .maxID, pieces: pieces) == before + after)
    }

    @Test("A second call can only lower the last stream")
    func lowers() throws {
        let filter = LateFrameFilter()
        let channel = EmbeddedChannel(handler: filter)
        try channel.writeInbound(ByteBuffer(bytes: Self.preface))
        filter.drop(after: 3)
        filter.drop(after: 9)
        try channel.writeInbound(ByteBuffer(bytes: Self.frame(5, [1]) + Self.frame(3, [2])))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: Self.preface))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: Self.frame(3, [2])))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        _ = try channel.finish()
    }
}
