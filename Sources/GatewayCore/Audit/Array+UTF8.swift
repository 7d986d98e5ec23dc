extension [UInt8] {
    /// Appends a string's bytes; `append(contentsOf:)` takes twice as long for one of a few dozen bytes.
    mutating func append(utf8 text: String) {
        let bytes = text.utf8.span
        self.append(addingCapacity: bytes.count) { room in
            for index in bytes.indices { room.append(bytes[index]) }
        }
    }
}
