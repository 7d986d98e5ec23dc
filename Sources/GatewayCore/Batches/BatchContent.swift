import Crypto
package import FCMModel

extension Batch {
    /// A recipient that is still to be sent to.
    package struct Recipient: Sendable, Hashable {
        /// Its place among the chunk's recipients.
        package var place: Int
        /// A token, a Firebase installation id, or the one topic, condition or device group.
        package var text: String
        /// True if the outcome of an earlier call was unknown. It is not sent to a third time.
        package var isResent = false

        package init(place: Int, _ text: String, isResent: Bool = false) {
            (self.place, self.text, self.isResent) = (place, text, isResent)
        }
    }

    /// A recipient's last outcome.
    package struct Result: Sendable, Hashable {
        package var place: Int
        package var text: String
        package var outcome: RecipientOutcome

        package init(_ recipient: Recipient, _ outcome: RecipientOutcome) {
            (self.place, self.text, self.outcome) = (recipient.place, recipient.text, outcome)
        }
    }
}

/// Seals what the store keeps of one tenant's batch. Bytes open only at their own place.
package struct BatchSealer: Sendable {
    private let id: String
    private let key: SymmetricKey

    package init(_ id: String, of profile: TenantProfile) {
        self.id = id
        self.key = profile.pseudonymizer.sealingKey
    }

    /// Seals the message, as JSON.
    package func seal(message: [UInt8]) throws(GatewayError) -> [UInt8] {
        try self.key.seal(message, for: self.purpose("message", 0))
    }

    package func open(message sealed: [UInt8]) throws(GatewayError) -> [UInt8] {
        try self.opened(sealed, "message", 0)
    }

    package func seal(_ recipients: some Collection<Batch.Recipient>, of chunk: Int) throws(GatewayError) -> [UInt8] {
        var writer = ByteWriter(reservingCapacity: recipients.count * 180)
        for recipient in recipients {
            writer.write(number: recipient.place << 1 | (recipient.isResent ? 1 : 0))
            writer.write(text: recipient.text)
        }
        return try self.key.seal(writer.bytes, for: self.purpose("pending", chunk))
    }

    package func recipients(in sealed: [UInt8], of chunk: Int) throws(GatewayError) -> [Batch.Recipient] {
        var reader = ByteReader(try self.opened(sealed, "pending", chunk))
        var recipients: [Batch.Recipient] = []
        while let number = reader.number(), let text = reader.text() {
            recipients.append(Batch.Recipient(place: number >> 1, text, isResent: number & 1 == 1))
        }
        return recipients
    }

    package func seal(_ results: [Batch.Result], of chunk: Int) throws(GatewayError) -> [UInt8] {
        var writer = ByteWriter(reservingCapacity: results.count * 220)
        for result in results {
            writer.write(number: result.place)
            writer.write(text: result.text)
            result.outcome.write(to: &writer)
        }
        return try self.key.seal(writer.bytes, for: self.purpose("results", chunk))
    }

    /// The results of a chunk, in the order of their places.
    package func results(in sealed: [UInt8], of chunk: Int) throws(GatewayError) -> [Batch.Result] {
        guard !sealed.isEmpty else { return [] }
        var reader = ByteReader(try self.opened(sealed, "results", chunk))
        var results: [Batch.Result] = []
        while let place = reader.number(), let text = reader.text(), let outcome = RecipientOutcome(from: &reader) {
            results.append(Batch.Result(Batch.Recipient(place: place, text), outcome))
        }
        return results.sorted { $0.place < $1.place }
    }

    /// Returns the digest that tells a request from another one. Without the key, no reader of the store can test guesses.
    func digest(of request: [UInt8]) -> [UInt8] {
        Array(HMAC<SHA256>.authenticationCode(for: request, using: self.key))
    }

    /// Returns the digest that tells a slice's send from any other. It does not change with a release, because it
    /// covers the stored bytes.
    func digest(of slice: Batch.Slice) -> [UInt8] {
        var hash = SHA256()
        for part in [slice.message, slice.pending] { hash.update(data: SHA256.hash(data: part).bytes) }
        hash.update(data: Array("\(slice.claim.round) \(slice.claim.slice)".utf8))
        return hash.finalize().bytes
    }

    private func opened(_ sealed: [UInt8], _ part: String, _ chunk: Int) throws(GatewayError) -> [UInt8] {
        guard let bytes = self.key.open(sealed, for: self.purpose(part, chunk)) else {
            throw GatewayError(.outcomeUnknown, "What is stored of the batch \(self.id) does not open")
        }
        return bytes
    }

    private func purpose(_ part: String, _ chunk: Int) -> String { "fcm-gateway batch \(part) 1 \(self.id)/\(chunk)" }
}

extension Target {
    /// Creates the target of a slice. Returns `nil` if a text is not valid for the kind.
    package init?(_ kind: Kind, _ texts: [String]) {
        switch kind {
        case .tokens: self = .tokens(texts)
        case .installations: self = .installations(texts)
        case .token, .installation, .topic, .condition, .group:
            guard texts.count == 1, let text = texts.first else { return nil }
            switch kind {
            case .token: self = .token(text)
            case .installation: self = .installation(text)
            case .topic:
                guard let topic = TopicName(text) else { return nil }
                self = .topic(topic)
            case .condition:
                guard let condition = try? TopicCondition(parsing: text) else { return nil }
                self = .condition(condition)
            case .tokens, .installations, .group: self = .deviceGroup(text)
            }
        }
    }
}
