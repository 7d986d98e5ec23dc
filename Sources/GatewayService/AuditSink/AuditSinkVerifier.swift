import Crypto
import Foundation
package import GatewayCore

/// Checks a second sink by itself, line by line, and learns from it what a store must hold.
package struct AuditSinkVerifier {
    /// What is wrong, and where.
    package struct Failure: Error, Equatable {
        /// The file.
        package var file: String
        /// The line, from 1.
        package var line: Int
        /// The record, where it is one.
        package var place: AuditPosition?
        /// What is wrong with it.
        package var reason: String
    }

    private let publicKey: AuditPublicKey?
    private var chains = AuditSinkChains()
    /// The chains at the last checkpoint.
    private var saved = AuditSinkChains()
    private var last: (content: AuditCheckpoint, digest: [UInt8])?
    private var cuts = AuditSinkCuts()
    private var evidence = AuditSinkEvidence()
    /// The first thing wrong since the last checkpoint; what was broken off there follows again.
    private var pending: Failure?
    private var skipped = (count: 0, digest: SHA256())
    private var place = (file: "", line: 0)

    /// How many records there were, those that came twice counted twice.
    package private(set) var records = 0
    /// A verifier of one sink.
    ///
    /// - Parameter publicKey: checks signatures; without it, they are not checked.
    package init(publicKey: AuditPublicKey?) {
        self.publicKey = publicKey
    }

    /// The highest number of a checkpoint; 0 for none.
    package var latest: Int { self.evidence.latest }

    /// What the sink has.
    package var witness: AuditWitness { self.evidence.witness }

    /// What is wrong when nothing follows any more; `nil` when all is well.
    package var finding: Failure? { self.pending ?? self.cuts.failure }

    /// Reads a file; several are the parts of one sink, oldest first.
    ///
    /// A last line without an end is one that is being written, or that was broken off. What the last file leaves open,
    /// ``finding`` tells.
    ///
    /// - Throws: ``Failure``, or why the file can't be read.
    package mutating func read(_ path: String) throws {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        self.place = (path, 0)
        var rest: [UInt8] = []
        while let data = try handle.read(upToCount: 1 << 18), !data.isEmpty {
            let bytes = rest + data
            var start = 0
            while let end = bytes[start...].firstIndex(of: UInt8(ascii: "\n")) {
                self.place.line += 1
                try self.take(Array(bytes[start..<end]))
                start = end + 1
            }
            rest = Array(bytes[start...])
        }
    }

    private mutating func restart() {
        self.saved = self.chains
        self.skipped = (0, SHA256())
    }

    private mutating func take(_ line: [UInt8]) throws(Failure) {
        let content = AuditSinkText.content(line)
        if case .line(.checkpoint(let checkpoint), let key)? = content {
            try self.take(checkpoint, key: key)
            return self.restart()
        }
        do throws(Failure) {
            switch content {
            case .resumed(let resumption)?: try self.resume(resumption)
            case .line(.record(let record), _)? where self.pending == nil: try self.check(record)
            case .line(.cut(let cut, let ended), _)? where self.pending == nil: try self.check(cut, ended: ended)
            case .line?: break
            case nil: throw self.failure("the line was changed")
            }
        } catch {
            self.pending = self.pending ?? error
        }
        self.skipped.count += line.count + 1
        self.skipped.digest.update(data: line)
        self.skipped.digest.update(data: [UInt8(ascii: "\n")])
    }

    private func failure(_ reason: String, _ place: AuditPosition? = nil) -> Failure {
        Failure(file: self.place.file, line: self.place.line, place: place, reason: reason)
    }

    private mutating func check(_ record: ChainedAuditRecord) throws(Failure) {
        let place = AuditPosition(writer: record.writer, sequence: record.sequence)
        var chain = self.chains.end(of: record.writer)
        let expected = chain.sequence &+ 1
        guard record.sequence == expected else {
            let missing = AuditPosition(writer: record.writer, sequence: expected)
            throw record.sequence > expected
                ? self.failure("the record is missing", missing) : self.failure("the record is out of place", place)
        }
        guard chain.append(record.entry).hash == record.hash else {
            throw self.failure("the record was changed", place)
        }
        self.chains.take(record, end: chain)
        self.records += 1
    }

    private mutating func check(_ cut: AuditCut, ended: AuditHead.State?) throws(Failure) {
        let place = AuditPosition(writer: cut.writer, sequence: cut.sequence)
        if let publicKey = self.publicKey, !publicKey.isGenuine(cut.signature, of: cut.text) {
            throw self.failure("the word that older records were removed is not genuine", place)
        }
        guard self.chains.take(cut, ended: ended) else {
            throw self.failure("the word that older records were removed is out of place", place)
        }
        self.cuts.add(cut, self.failure("the word that older records were removed was put in later", place))
    }

    private mutating func resume(_ resumption: AuditSinkResumption) throws(Failure) {
        if let publicKey = self.publicKey, !publicKey.isGenuine(resumption.signature, of: resumption.text) {
            throw self.failure("the line's signature is not genuine")
        }
        guard resumption.after == self.last?.content.number ?? 0, resumption.skipped == self.skipped.count,
            resumption.digest == Array(self.skipped.digest.finalize())
        else { throw self.failure("what was broken off before this line was changed") }
        self.pending = nil
        self.chains = self.saved
        self.cuts.rollBack()
    }

    // MARK: Checkpoints

    private mutating func take(_ checkpoint: SignedCheckpoint, key: String) throws(Failure) {
        guard let content = checkpoint.content, content.number == checkpoint.number else {
            throw self.pending ?? self.failure("the checkpoint was changed")
        }
        if let publicKey = self.publicKey {
            guard key == publicKey.base64 else {
                throw self.pending ?? self.failure("the checkpoint's key is another one")
            }
            guard publicKey.isGenuine(checkpoint.signature, of: checkpoint.text) else {
                throw self.pending ?? self.failure("the checkpoint's signature is not genuine")
            }
        }
        let digest = checkpoint.digest
        if self.evidence.digest(of: content.number) == digest { return self.goBack(to: content, digest) }
        if let pending = self.pending { throw pending }
        if let last = self.last {
            try self.checkOrder(content, after: last)
            try self.checkEnds(content, since: last.content)
        } else if self.records > 0 || !self.chains.ends.isEmpty {
            try self.checkEnds(content, since: nil)
        }
        self.chains.take(content)
        self.cuts.pass(content, isFirst: self.last == nil)
        self.last = (content, digest)
        self.evidence.add(content, digest: digest)
    }

    /// A checkpoint that has been there: after a start or another file's beginning, what it is not known that the sink has
    /// comes again.
    ///
    /// All that follows it follows once more, up to the next that has not been there; so what stands before it in vain
    /// does no harm.
    private mutating func goBack(to content: AuditCheckpoint, _ digest: [UInt8]) {
        self.pending = nil
        self.last = (content, digest)
        self.chains = AuditSinkChains(content)
        self.cuts.rollBack()
    }

    private func checkOrder(
        _ content: AuditCheckpoint,
        after last: (content: AuditCheckpoint, digest: [UInt8])
    ) throws(Failure) {
        let number = content.number
        if let known = self.evidence.digest(of: number), known != Array(SHA256.hash(data: content.text)) {
            throw self.failure("checkpoint \(number) is another one than before")
        }
        if number == last.content.number + 1 {
            guard content.previous == last.digest else {
                throw self.failure("the checkpoint does not follow the one before it")
            }
            return
        }
        // A sink that could not be written for days lacks checkpoints that the store keeps no more.
        guard number > last.content.number, number.isMultiple(of: AuditCheckpoint.anchorInterval) else {
            throw self.failure("checkpoint \(last.content.number + 1) is missing")
        }
        let anchor = AuditCheckpoint.anchorNumber(before: number)
        if let known = self.evidence.digest(of: anchor), known != content.anchor {
            throw self.failure("the checkpoint does not follow checkpoint \(anchor)")
        }
    }

    /// Whether the chains have come to where a checkpoint says that they are.
    private func checkEnds(_ content: AuditCheckpoint, since last: AuditCheckpoint?) throws(Failure) {
        for head in content.heads where !self.chains.agrees(with: head) {
            let end = self.chains.end(of: head.writer)
            let sequence = min(end.sequence, head.sequence) + (end.sequence < head.sequence ? 1 : 0)
            throw self.failure(
                "checkpoint \(content.number) has another end of the chain",
                AuditPosition(writer: head.writer, sequence: max(sequence, 1))
            )
        }
        let known = Set(content.heads.map(\.writer))
        if let writer = self.chains.ends.keys.sorted()
            .first(where: { $0 > content.settledWriter && !known.contains($0) })
        {
            throw self.failure(
                "checkpoint \(content.number) does not know the chain",
                AuditPosition(writer: writer, sequence: self.chains.ends[writer]?.sequence ?? 1)
            )
        }
        var ends = AuditSettledEnds(writer: last?.settledWriter ?? 0, digest: last?.settledDigest)
        guard content.settledWriter - ends.writer <= self.chains.ends.count else {
            throw self.failure("checkpoint \(content.number) has chains that are missing")
        }
        while ends.writer < content.settledWriter { ends.append(self.chains.settledHead(of: ends.writer + 1)) }
        guard ends.digest == content.settledDigest, ends.writer == content.settledWriter else {
            throw self.failure("checkpoint \(content.number) has other ends of the chains that have ended")
        }
    }
}
