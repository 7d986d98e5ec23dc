import Foundation
import GatewayCore
import NIOCore

/// Checks an export that somebody was given.
struct AuditExportCheck {
    /// What was found.
    struct Result: Equatable {
        /// Whether anything was changed.
        var verdict: AuditExportVerifier.Verdict
        /// Whose records can be read, as the export says; `nil` for everybody's.
        var tenant: String?
        /// The checkpoint that vouches for the chains; `nil` for none.
        var checkpoint: Int?
    }

    private let sealer: AuditSealer?
    private let publicKey: AuditPublicKey?

    /// A check, of seals and signatures too where there is something to check them with.
    init(sealer: AuditSealer?, publicKey: AuditPublicKey?) {
        self.sealer = sealer
        self.publicKey = publicKey
    }

    /// Reads an export to its end, or to the first bad record.
    ///
    /// - Parameter path: the file's path, or `-` for standard input.
    /// - Returns: what was found.
    /// - Throws: `notFound` when the file can't be read, or holds no export.
    func verify(_ path: String) throws(GatewayError) -> Result {
        var lines = LineInput(try Self.open(path))
        guard let first = try Self.next(&lines, path), case .head(let head)? = AuditExportLine.content(of: first) else {
            throw GatewayError(.notFound, "\(path) is no export of the audit")
        }
        var verifier = AuditExportVerifier(
            isWhole: head.isWhole,
            isLive: head.isLive,
            sealer: self.sealer,
            publicKey: self.publicKey
        )
        var stated: AuditExporter.Summary?
        var isGood = true
        while isGood, let line = try Self.next(&lines, path) {
            switch AuditExportLine.content(of: line) {
            case .item(let item) where stated == nil:
                isGood = verifier.take(item)
            case .end(let summary) where stated == nil:
                stated = summary
            case .item, .end, .head, nil:
                verifier.refuse(stated == nil ? "the line was changed" : "something follows the export's end")
                isGood = false
            }
        }
        return Result(verdict: verifier.finish(stated: stated), tenant: head.tenant, checkpoint: verifier.checkpoint)
    }

    private static func open(_ path: String) throws(GatewayError) -> FileHandle {
        if path == "-" { return .standardInput }
        guard let handle = FileHandle(forReadingAtPath: path) else {
            throw GatewayError(.notFound, "\(path) can't be read")
        }
        return handle
    }

    private static func next(_ lines: inout LineInput, _ path: String) throws(GatewayError) -> ByteBuffer? {
        do {
            return try lines.next()
        } catch {
            throw GatewayError(.notFound, "\(path) can't be read, or is no export of the audit", cause: error)
        }
    }
}
