import GatewayCore

/// Properties of every pair of `traceparent` and `tracestate` that a caller may send, separated by a line feed.
enum TraceContextProperties {
    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let text = String(validating: input, as: UTF8.self) else { return }
        let lines = text.utf8.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
        try Self.checkParent(Array(lines[0]))
        if lines.count > 1 { try Self.checkState(Array(lines[1])) }
    }

    private static func checkParent(_ bytes: [UInt8]) throws(FuzzFinding) {
        let parent = TraceParent(String(decoding: bytes, as: UTF8.self))
        try FuzzFinding.requireEqual(parent != nil, Self.isParent(bytes), "the places of the bytes say otherwise")
        guard let parent else { return }
        try FuzzFinding.requireEqual(Array(parent.traceID.utf8), Array(bytes[3..<35]), "the trace's id")
        try FuzzFinding.requireEqual(Array(parent.spanID.utf8), Array(bytes[36..<52]), "the span's id")
        try FuzzFinding.requireEqual(TraceParent(parent.text), parent, "what is handed on is read otherwise")
        let isSampled = [UInt8]("13579bdf".utf8).contains(bytes[54])
        try FuzzFinding.requireEqual(parent.isSampled, isSampled, "whether it is recorded")
    }

    /// True if the bytes at each position fit the standard, for every version.
    private static func isParent(_ bytes: [UInt8]) -> Bool {
        let dashes: Set = [2, 35, 52]
        guard bytes.count == 55 || bytes.count > 55 && bytes[55] == UInt8(ascii: "-") else { return false }
        for (place, byte) in bytes.prefix(55).enumerated() {
            let isFitting = dashes.contains(place) ? byte == UInt8(ascii: "-") : "0123456789abcdef".utf8.contains(byte)
            guard isFitting else { return false }
        }
        let (version, zero) = (bytes.prefix(2), UInt8(ascii: "0"))
        return version != [UInt8](repeating: UInt8(ascii: "f"), count: 2)[...]
            && (bytes.count == 55 || version != [zero, zero][...])
            && bytes[3..<35].contains { $0 != zero } && bytes[36..<52].contains { $0 != zero }
    }

    private static func checkState(_ bytes: [UInt8]) throws(FuzzFinding) {
        guard let state = TraceState(String(decoding: bytes, as: UTF8.self)) else { return }
        try FuzzFinding.require(state.text.utf8.count <= TraceState.maxBytes, "it is too long")
        let isField = state.text.utf8.allSatisfy { 0x20...0x7E ~= $0 || $0 == 0x09 }
        try FuzzFinding.require(isField, "it would break a field")
        let members = state.text.split(separator: ",", omittingEmptySubsequences: false)
        try FuzzFinding.require(members.count <= TraceState.maxMembers, "it has too many members")
        let keys = members.map { $0.prefix { $0 != "=" } }
        try FuzzFinding.requireEqual(Set(keys).count, members.count, "a key is there twice")
        try FuzzFinding.requireEqual(TraceState(state.text), state, "what is handed on is read otherwise")
    }
}
