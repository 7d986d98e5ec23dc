import Crypto
import Foundation
import GatewayCore

/// The second sink as JSON lines on standard output, for whoever collects it.
///
/// A reader that does not keep up holds up nothing but this sink: what it does not take in time is broken off, marked as
/// such by a signed line, and follows again. What an earlier process wrote can't be read back, so the last of it may come
/// again after a start.
final class AuditSinkOutput: AuditSink {
    private struct State {
        /// The last checkpoint that this process wrote whole.
        var last: SignedCheckpoint?
        /// What was written since.
        var rest = (count: 0, digest: SHA256())
        var isMidLine = false
    }

    private let output: PatientOutput
    private let signer: AuditSigner
    private let key: String
    /// Held while something is written, by a thread that may wait.
    private let state = BlockingState(State())

    /// Standard output, or another descriptor.
    ///
    /// - Parameters:
    ///   - signer: signs that something was broken off.
    ///   - output: where it is written to.
    init(signer: AuditSigner, output: PatientOutput = PatientOutput(descriptor: STDOUT_FILENO, patience: 1_000)) {
        self.signer = signer
        self.key = signer.publicKey.base64
        self.output = output
    }

    func resume() async throws(GatewayError) -> SignedCheckpoint? {
        try await self.blocking { state in
            guard state.rest.count > 0 else { return state.last }
            if state.isMidLine { try self.write([UInt8(ascii: "\n")], &state) }
            var resumption = AuditSinkResumption(
                after: state.last?.number ?? 0,
                skipped: state.rest.count,
                digest: Array(state.rest.digest.finalize()),
                signature: []
            )
            resumption.signature = try self.signer.sign(resumption.text)
            try self.write(AuditSinkText.line(resumption), &state)
            return state.last
        }
    }

    func write(_ lines: [AuditSinkLine], isWhole: Bool) async throws(GatewayError) {
        try await self.blocking { state in
            try self.write(lines.flatMap { AuditSinkText.line($0, key: self.key) }, &state)
            guard isWhole else { return }
            state.last = lines.compactMap(\.checkpoint).last ?? state.last
            state.rest = (0, SHA256())
        }
    }

    private func write(_ bytes: [UInt8], _ state: inout State) throws {
        var left = bytes[...]
        while !left.isEmpty {
            let written = left.prefix(try self.output.put(left))
            state.rest.count += written.count
            state.rest.digest.update(data: written)
            state.isMidLine = written.last != UInt8(ascii: "\n")
            left = left.dropFirst(written.count)
        }
    }

    private func blocking<T: Sendable>(
        _ body: @escaping @Sendable (inout State) throws -> T
    ) async throws(GatewayError) -> T {
        try await self.state.blocking("Standard output can't be written", body)
    }
}
