import Crypto

/// The end of one writer's chain, kept beside it so that a missing tail is noticed, and sealed so that it can't be
/// rewritten with the chain.
package struct AuditHead: Sendable, Hashable {
    /// The state of a writer.
    package enum State: String, Sendable, Hashable {
        /// It writes, or ended without saying so. Next: `closed`, `recovered`.
        case open
        /// It stopped in order.
        case closed
        /// It ended uncleanly and a later start closed its chain.
        case recovered
    }

    package var writer: Int
    package var sequence: Int
    package var hash: [UInt8]
    package var state: State
    /// HMAC over all of the above; empty in a checkpoint, which is signed itself.
    package var seal: [UInt8]

    package init(writer: Int, sequence: Int, hash: [UInt8], state: State, seal: [UInt8] = []) {
        (self.writer, self.sequence, self.hash) = (writer, sequence, hash)
        (self.state, self.seal) = (state, seal)
    }

    init(_ chain: AuditChain, state: State, seal: [UInt8] = []) {
        self.init(writer: chain.writer, sequence: chain.sequence, hash: chain.hash, state: state, seal: seal)
    }

    package var unsealed: AuditHead { AuditHead(self.chain, state: self.state) }

    package var position: AuditChain.Position { AuditChain.Position(writer: self.writer, sequence: self.sequence) }

    package var chain: AuditChain {
        AuditChain(writer: self.writer, sequence: self.sequence, hash: self.hash)
    }

    /// The line that is sealed, and hashed into a checkpoint.
    var text: String { "\(self.writer) \(self.sequence) \(Hex.text(self.hash)) \(self.state.rawValue)" }
}

/// Seals and checks heads under a key derived from the audit key.
package struct AuditSealer: Sendable {
    private let key: SymmetricKey

    package init(auditKey: Secret) {
        self.key = auditKey.symmetricKey.derived(for: "fcm-gateway audit seal 1")
    }

    /// The sealed head of a chain.
    package func head(of chain: AuditChain, state: AuditHead.State) -> AuditHead {
        var head = AuditHead(chain, state: state)
        head.seal = Array(HMAC<SHA256>.authenticationCode(for: Array(head.text.utf8), using: self.key))
        return head
    }

    /// True if a head's seal is genuine.
    package func isGenuine(_ head: AuditHead) -> Bool {
        let text = Array(head.text.utf8)
        return HMAC<SHA256>.isValidAuthenticationCode(head.seal, authenticating: text, using: self.key)
    }
}

/// A whole chain of records that is written at once: what a command did to the store directly.
///
/// It is closed when it appears, so it never counts as a process that ended uncleanly, and it stands beside the chain
/// of a gateway that is running.
package struct AuditClosedChain: Sendable {
    /// The chain's begin, what was done, its end.
    package let records: [ChainedAuditRecord]
    package let head: AuditHead

    /// A chain of its own for one record, under an unused number.
    package init(_ record: AuditRecord, writer: Int, sealer: AuditSealer) {
        var chain = AuditChain(writer: writer)
        let opened = AuditRecord(.auditOpened, by: record.principal, at: record.time)
        let closed = AuditRecord(.auditClosed, by: record.principal, at: record.time)
        self.records = [opened, record, closed].map { chain.append($0) }
        self.head = sealer.head(of: chain, state: .closed)
    }
}
