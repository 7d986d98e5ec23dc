import NIOCore

/// Ways to cut an input into pieces, as a network would.
enum Pieces {
    /// Single bytes, and two divisions that depend on a hash of the input.
    static func cuts(of bytes: [UInt8]) -> [[ByteBuffer]] {
        let seed = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return [
            bytes.map { ByteBuffer(bytes: [$0]) },
            Self.cut(bytes, seed: seed, longest: 7),
            Self.cut(bytes, seed: ~seed, longest: 90),
        ]
    }

    private static func cut(_ bytes: [UInt8], seed: UInt64, longest: UInt64) -> [ByteBuffer] {
        var state = seed
        var pieces: [ByteBuffer] = []
        var start = 0
        while start < bytes.count {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let end = min(bytes.count, start + 1 + Int((state >> 33) % longest))
            pieces.append(ByteBuffer(bytes: bytes[start..<end]))
            start = end
        }
        return pieces
    }
}
