import FCMModel
import NIOCore

/// Properties of every accepted legacy request, in either format.
enum LegacyRequests {
    /// Checks the request's limits, and that writing and reading it again gives the same request.
    static func check(_ request: LegacySendRequest) throws(FuzzFinding) {
        try Self.checkPromises(request)
        let encoded: ByteBuffer
        do {
            encoded = try LegacyRequestEncoder.encode(request.message, to: request.target)
        } catch {
            throw FuzzFinding("accepted, but not to be written: \(error)")
        }
        let again: LegacySendRequest
        do {
            again = try LegacyRequestDecoder.decode(encoded)
        } catch  where error.code == .messageTooBig {
            // The size counts lists as written; their canonical form may take more bytes (L-SIZE).
            try FuzzFinding.require(
                request.message.payloadBytes > request.target.maxPayloadBytes,
                "written larger than it is"
            )
            return
        } catch {
            throw FuzzFinding("written, but refused: \(error)")
        }
        try FuzzFinding.requireEqual(Self.tokens(again.target), Self.tokens(request.target), "another target")
        try FuzzFinding.requireEqual(again.message, request.message, "another message")
        try FuzzFinding.requireEqual(again.localErrors, request.localErrors, "other errors of single recipients")
        try FuzzFinding.requireEqual(again.payloadBytes, request.message.payloadBytes, "another size")
        let twice = try? LegacyRequestEncoder.encode(again.message, to: again.target)
        try FuzzFinding.requireEqual(twice, encoded, "written differently the second time")
    }

    /// The parts of a request that the emulator knows too.
    static func words(_ request: LegacySendRequest) -> EmulatorOpinion.Request {
        EmulatorOpinion.Request(
            isDryRun: request.message.dryRun,
            dataKeys: Set(request.message.data.map(\.key)),
            collapseKey: request.message.collapseKey,
            timeToLive: request.message.timeToLive,
            restrictedPackageName: request.message.restrictedPackageName
        )
    }

    private static func checkPromises(_ request: LegacySendRequest) throws(FuzzFinding) {
        let message = request.message
        try FuzzFinding.require(request.payloadBytes <= request.target.maxPayloadBytes, "accepted over the limit")
        try FuzzFinding.require(
            (0...Message.maxTimeToLive).contains(message.timeToLive ?? 0),
            "accepted with a time to live of \(message.timeToLive ?? 0)"
        )
        try FuzzFinding.require(message.collapseKey != "" && message.restrictedPackageName != "", "an empty text")
        let keys = message.data.map { Array($0.key.utf8) }
        try FuzzFinding.requireEqual(Set(keys).count, keys.count, "repeated keys in the data")
        for entry in message.data {
            try FuzzFinding.require(!ValueRules.isRefusedDataKey(entry.key), "accepted the reserved key \(entry.key)")
        }
        try FuzzFinding.require(
            (0...ValueRules.maxBadge).contains(message.notification?.badge ?? 0),
            "a badge too large"
        )
        try FuzzFinding.require(message.notification?.isEmpty != true, "an empty notification")
        switch request.target {
        case .token(let token), .notificationKey(let token):
            try FuzzFinding.require(!token.isEmpty && !TopicName.hasLegacyPrefix(token), "a token that is none")
        case .tokens(let tokens):
            try FuzzFinding.require((1...Target.maxRecipients).contains(tokens.count), "\(tokens.count) tokens")
            let isEvery = request.localErrors.keys.allSatisfy { tokens.indices.contains($0) }
            try FuzzFinding.require(isEvery, "an error of nobody")
        case .condition(let condition):
            try FuzzFinding.require(condition.fits(.legacy), "a condition that does not fit")
        case .topic:
            break
        case .installation, .installations, .deviceGroup:
            throw FuzzFinding("a target that the protocol does not know")
        }
    }

    /// A group's key is written in the place of a token, and read as a token.
    private static func tokens(_ target: Target) -> Target {
        if case .notificationKey(let key) = target { .token(key) } else { target }
    }
}
