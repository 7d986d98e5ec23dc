extension JSONValue {
    /// The value as JSON without blanks, members sorted by the Unicode code points of their names.
    ///
    /// Numbers stay as written, `null` is kept, strings are quoted; escapes are those ``JSONWriter`` writes.
    package var canonicalText: String {
        var bytes: ContiguousArray<UInt8> = []
        self.tape.write(self.index, to: &bytes, isCanonical: true)
        return String(decoding: bytes, as: UTF8.self)
    }
}
