extension V1Reply {
    /// What a v1 client gets to see of a message that was not taken, whichever upstream refused it or the gateway
    /// itself (V-FACADE; the table of the v1 facade on a legacy upstream).
    ///
    /// - Parameter rejection: why.
    package init(refusing rejection: Rejection) {
        self.init(V1Fault(rejection), code: rejection.code)
    }

    /// What a v1 client gets to see of one recipient's outcome.
    ///
    /// - Parameters:
    ///   - outcome: what became of the message.
    ///   - project: the project's id as it stands in the request's path.
    package init(_ outcome: RecipientOutcome, project: String) {
        switch outcome {
        case .accepted(let acceptance): self.init(acceptance, project: project)
        case .rejected(let rejection): self.init(refusing: rejection)
        }
    }
}
