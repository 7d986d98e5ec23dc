import ArgumentParser

/// The options that narrow down audit records.
struct AuditFilter: ParsableArguments {
    /// Only this tenant's records.
    @Option(name: .long, help: "Only this tenant's records.") var tenant: TenantArgument?

    /// Only records of this action.
    @Option(name: .long, help: "Only records of this action.") var action: String?

    /// Only records with this outcome.
    @Option(name: .long, help: "Only records with this outcome.") var outcome: String?

    /// Only records with this code.
    @Option(name: .long, help: "Only records with this code of a refusal or failure.") var code: String?

    /// Only what this key or operator did.
    @Option(name: .long, help: "Only what this key did, by its id, or admin, gateway or command.") var principal:
        String?

    /// Only records of this request.
    @Option(name: .long, help: "Only records of the request with this id.") var requestID: String?

    /// Only records about this token or topic, which the gateway matches by its pseudonym.
    @Option(name: .long, help: "Only records about this token or topic.") var target: String?

    /// Only records about this message.
    @Option(name: .long, help: "Only records about the message with this id.") var message: String?

    /// The API's parameters.
    var query: [(name: String, value: String)] {
        [
            ("tenant", self.tenant?.name), ("action", self.action), ("outcome", self.outcome),
            ("code", self.code), ("principal", self.principal), ("request_id", self.requestID),
            ("target", self.target), ("message", self.message),
        ]
        .compactMap { name, value in value.map { (name: name, value: $0) } }
    }
}
