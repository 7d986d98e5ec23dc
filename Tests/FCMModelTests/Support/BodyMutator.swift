import NIOCore

/// Damages bodies as networks, proxies and careless clients do.
enum BodyMutator {
    /// A copy with one to four damages.
    static func mutate(_ body: ByteBuffer, using random: inout SplitMix64) -> ByteBuffer {
        var bytes = Array(body.readableBytesView)
        for _ in 0...random.below(4) {
            let place = random.below(bytes.count + 1)
            switch random.below(6) {
            case 0: bytes.insert(UInt8(random.below(256)), at: place)
            case 1: bytes.insert(random.pick(Array("{}[]\",:0\\e-.n".utf8)), at: place)
            case 2 where place < bytes.count: bytes.remove(at: place)
            case 3 where place < bytes.count: bytes[place] = UInt8(random.below(256))
            case 4: bytes.removeLast(bytes.count - place)
            default:
                // A piece of the body once more, somewhere else.
                let piece = bytes[place..<min(bytes.count, place + random.below(20))]
                bytes.insert(contentsOf: Array(piece), at: random.below(bytes.count + 1))
            }
        }
        return ByteBuffer(bytes: bytes)
    }
}
