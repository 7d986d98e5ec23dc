import Foundation
package import GatewayCore

/// A file beside the store that is written whole or not at all, and that only its owner can read.
///
/// What it holds is worth less than a wait for the disk: with the power, its newest content may be lost. Calls block.
package struct StateFile: Sendable {
    private let path: String

    package init(path: String) {
        self.path = path
    }

    /// The file's content; `nil` when there is no file.
    ///
    /// - Throws: `storeUnavailable` when it can't be read, `invalid` when it is larger than the bound.
    package func read(maxBytes: Int) throws(GatewayError) -> [UInt8]? {
        let bytes: [UInt8]
        do {
            let file = try POSIXFile(self.path, O_RDONLY)
            defer { file.release() }
            bytes = try file.read(at: 0, count: maxBytes + 1)
        } catch {
            if error.number == ENOENT { return nil }
            throw self.error("can't be read", error)
        }
        guard bytes.count <= maxBytes else { throw GatewayError(.invalid, "\(self.path) is larger than it can be") }
        return bytes
    }

    /// Replaces the file's content; where it throws, the file is as it was.
    package func write(_ bytes: [UInt8]) throws(GatewayError) {
        let draft = "\(self.path).new"
        let file: POSIXFile
        do {
            file = try POSIXFile(draft, O_WRONLY | O_CREAT | O_TRUNC)
        } catch {
            throw self.error("can't be made", error)
        }
        var failure: POSIXFailure?
        do {
            try file.write(bytes, at: 0)
        } catch {
            failure = error
        }
        if !file.release(), failure == nil { failure = POSIXFailure() }
        // POSIX takes paths as pointers, valid during the calls.
        if failure == nil, unsafe rename(draft, self.path) != 0 { failure = POSIXFailure() }
        guard let failure else { return }
        unsafe unlink(draft)
        throw self.error("can't be written", failure)
    }

    private func error(_ what: String, _ failure: POSIXFailure) -> GatewayError {
        GatewayError(.storeUnavailable, "\(self.path) \(what)", cause: failure)
    }
}
