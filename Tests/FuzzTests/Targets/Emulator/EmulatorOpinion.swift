@testable import FCMEmulator

/// The emulator's reading of an input, by its own code.
///
/// It has its own file, since the emulator and the gateway have different types with the same names.
enum EmulatorOpinion {
    /// The parts of a request that both know.
    struct Request: Equatable {
        var isDryRun: Bool
        var dataKeys: Set<String>
        var collapseKey: String?
        var timeToLive: Int?
        var restrictedPackageName: String?
    }

    /// The parts of a condition that both know.
    struct Condition: Equatable {
        var canonical: String
        var topics: [String]
    }

    /// The names and values of a form; nil if it can't be decoded.
    static func formFields(_ body: [UInt8]) -> [[String]]? {
        (try? FormFields.read(body))?.map { [$0.name, $0.value] }
    }

    /// A form sent to `/fcm/send`; nil if it is refused.
    static func form(_ body: [UInt8]) -> Request? {
        (try? LegacyFormValidator.validate(body)).map { Self.request($0) }
    }

    /// A JSON request sent to `/fcm/send`; nil if it is refused.
    static func json(_ body: [UInt8]) -> Request? {
        (try? LegacySendValidator.validate(body)).map { Self.request($0) }
    }

    /// A condition under the limits of v1, or else of the legacy protocol; nil if it is refused.
    static func condition(_ text: String, isV1: Bool) -> Condition? {
        (try? ConditionEvaluator(text, profile: isV1 ? .v1 : .legacy))
            .map { Condition(canonical: $0.canonical, topics: $0.topics) }
    }

    private static func request(_ message: AcceptedMessage) -> Request {
        Request(
            isDryRun: message.isDryRun,
            dataKeys: Set(message.content.data.keys),
            collapseKey: message.content.collapseKey,
            timeToLive: message.content.timeToLive,
            restrictedPackageName: message.content.restrictedPackageName
        )
    }
}
