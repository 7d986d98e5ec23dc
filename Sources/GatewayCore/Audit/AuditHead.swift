import Crypto

/// The end of one writer's chain, kept beside it so that a missing tail is noticed, and sealed so that it can't be
/// rewritten with the chain.
package struct AuditHead: Sendable, Hashable {
    /// How a writer stands.
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
        self.writer = writer
        self.sequence = sequence
        self.hash = hash
        self.state = state
        self.seal = seal
    }

    package var unsealed: AuditHead {
        AuditHead(writer: self.writer, sequence: self.sequence, hash: self.hash, state: self.state)
    }

    package var chain: AuditChain {
        AuditChain(writer: self.writer, sequence: self.sequence, hash: self.hash)
    }
}

/// Seals and checks heads under a key derived from the audit key.
package struct AuditSealer: Sendable {
    private let key: SymmetricKey

    /// Derives the sealing key.
    package init(auditKey: Secret) {
        self.key = HKDF<SHA256>
            .deriveKey(
                inputKeyMaterial: auditKey.symmetricKey,
                info: Array("fcm-gateway audit seal 1".utf8),
                outputByteCount: 32
            )
    }

    /// The sealed head of a chain.
    package func head(of chain: AuditChain, state: AuditHead.State) -> AuditHead {
        let text = Self.sealedText(chain.writer, chain.sequence, chain.hash, state)
        let seal = HMAC<SHA256>.authenticationCode(for: text, using: self.key)
        return AuditHead(
            writer: chain.writer,
            sequence: chain.sequence,
            hash: chain.hash,
            state: state,
            seal: Array(seal)
        )
    }

    /// Whether a head's seal is its own.
    package func isGenuine(_ head: AuditHead) -> Bool {
        HMAC<SHA256>
            .isValidAuthenticationCode(
                head.seal,
                authenticating: Self.sealedText(head.writer, head.sequence, head.hash, head.state),
                using: self.key
            )
    }

    private static func sealedText(
        _ writer: Int,
        _ sequence: Int,
        _ hash: [UInt8],
        _ state: AuditHead.State
    ) -> [UInt8] {
        Array("\(writer) \(sequence) \(Hex.text(hash)) \(state.rawValue)".utf8)
    }
}

/// A whole chain of records that is written at once: what a command did to the store directly.
///
/// It is closed when it appears, so it never counts as a process that ended uncleanly, and it stands beside the chain of
/// a gateway that is running.
package struct AuditClosedChain: Sendable {
    /// The records in their places: the chain's begin, what was done, its end.
    package let records: [ChainedAuditRecord]
    /// The chain's sealed end.
    package let head: AuditHead

    /// A chain that tells of one thing that was done.
    ///
    /// - Parameters:
    ///   - record: what was done, by whom and when.
    ///   - writer: the chain's number, which no other has.
    ///   - sealer: seals the end.
    package init(_ record: AuditRecord, writer: Int, sealer: AuditSealer) {
        func own(_ action: AuditAction) -> AuditRecord {
            AuditRecord(
                time: record.time,
                tenant: nil,
                principal: record.principal,
                action: action.rawValue,
                outcome: .done,
                requestID: ""
            )
        }
        var chain = AuditChain(writer: writer)
        self.records = [own(.auditOpened), record, own(.auditClosed)].map { chain.append($0) }
        self.head = sealer.head(of: chain, state: .closed)
    }
}
