package import GatewayCore

/// A spool file in memory that can refuse and be tampered with.
package final class InMemorySpoolFile: AuditSpoolFile {
    /// The contents of the file, and counters of its calls.
    package struct Contents: Sendable {
        package var bytes: [UInt8] = []
        package var writes = 0
        package var refused = 0
        package var aside: [String: [UInt8]] = [:]
        var refuses = false
        /// The number of bytes that a refused write stores nevertheless.
        var remains = 0
        var refusesCuts = false
    }

    private let contents: Observed<Contents>

    package init(_ bytes: [UInt8] = []) {
        var contents = Contents()
        contents.bytes = bytes
        self.contents = Observed(contents)
    }

    package var current: Contents { self.contents.current }

    /// Makes writes fail from now on after storing `remains` bytes, or succeed again.
    package func refuse(_ refuses: Bool = true, leaving remains: Int = 0) {
        self.contents.change { ($0.refuses, $0.remains) = (refuses, remains) }
    }

    package func refuseCuts(_ refuses: Bool = true) { self.contents.change { $0.refusesCuts = refuses } }

    package func tamper(_ body: (inout [UInt8]) -> Void) { self.contents.change { body(&$0.bytes) } }

    package func wait(until isMet: @escaping @Sendable (Contents) -> Bool) async throws {
        try await self.contents.wait(until: isMet)
    }

    package func size() async throws(GatewayError) -> Int { self.current.bytes.count }

    package func read(at offset: Int, count: Int) async throws(GatewayError) -> [UInt8] {
        Array(self.current.bytes.dropFirst(offset).prefix(count))
    }

    package func write(_ bytes: [UInt8], at offset: Int) async throws(GatewayError) {
        let isWritten = self.contents.change { contents in
            let isRefused = contents.refuses || offset > contents.bytes.count
            let written = isRefused ? bytes.prefix(contents.remains) : bytes[...]
            // As in a file, the bytes after the write stay.
            let end = min(offset + written.count, contents.bytes.count)
            if offset <= end { contents.bytes.replaceSubrange(offset..<end, with: written) }
            contents.refused += isRefused ? 1 : 0
            contents.writes += isRefused ? 0 : 1
            return !isRefused
        }
        if !isWritten { throw GatewayError(.storeUnavailable, "The spool refuses, as it was told to") }
    }

    package func cut(to size: Int) async throws(GatewayError) {
        let isCut = self.contents.change { contents in
            guard !contents.refusesCuts else { return false }
            contents.bytes = Array(contents.bytes.prefix(size))
            return true
        }
        if !isCut { throw GatewayError(.storeUnavailable, "The spool refuses to be emptied, as it was told to") }
    }

    package func setAside(_ suffix: String) async throws(GatewayError) -> String {
        self.contents.change { contents in
            contents.aside[suffix] = contents.bytes
            contents.bytes = []
        }
        return "spool.\(suffix)"
    }
}
