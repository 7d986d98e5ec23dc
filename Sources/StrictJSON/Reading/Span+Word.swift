extension Span where Element == UInt8 {
    /// Reads eight bytes as one word, the first byte lowest.
    ///
    /// Written byte by byte to stay in safe code; the optimiser makes a single load of it when the caller has already
    /// compared the position with the bounds.
    ///
    /// - Parameter position: The first byte; it and the seven after it must exist.
    /// - Returns: The word.
    @inline(__always)
    func word(at position: Int) -> UInt64 {
        var word = UInt64(self[position])
        word |= UInt64(self[position &+ 1]) &<< 8
        word |= UInt64(self[position &+ 2]) &<< 16
        word |= UInt64(self[position &+ 3]) &<< 24
        word |= UInt64(self[position &+ 4]) &<< 32
        word |= UInt64(self[position &+ 5]) &<< 40
        word |= UInt64(self[position &+ 6]) &<< 48
        word |= UInt64(self[position &+ 7]) &<< 56
        return word
    }
}
