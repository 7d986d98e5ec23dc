extension JSONValue {
    /// The value as JSON without blanks, members sorted by the Unicode code points of their names.
    ///
    /// A value of more than 32 KiB, which no message of FCM has room for, keeps its order: putting long names in order that
    /// are nearly alike takes long. Numbers stay as written, `null` is kept, strings are quoted; escapes are those ``JSONWriter`` writes.
    package var canonicalText: String {
        var bytes: ContiguousArray<UInt8> = []
        let nodes = self.tape.nodes
        let last = nodes[Int(nodes[self.index].end) - 1]
        let byteCount = Int(last.start) + Int(last.extent) - Int(nodes[self.index].start)
        self.tape.write(self.index, to: &bytes, isCanonical: byteCount <= 32 * 1024)
        return String(decoding: bytes, as: UTF8.self)
    }
}
