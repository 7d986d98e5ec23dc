/// Control routes for what FCM knows of devices' registrations.
extension ControlRoutes {
    /// Answers a request to one of them, nil if it is for another.
    func handleRegistrations(_ request: ReceivedRequest, name: Substring) throws(ControlError) -> Answer? {
        switch (name, request.method) {
        case ("registrations", "POST"):
            return try self.register(request)
        case ("registrations", "DELETE"):
            self.state.forgetRegistrations()
            return .noContent
        default:
            return nil
        }
    }

    /// Ends registrations, makes them good again, or gives them a canonical token.
    private func register(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["tokens", "registered", "canonical"])
        guard let tokens = try members.strings("tokens") else { throw .badRequest("tokens is missing") }
        let isRegistered = try members.boolean("registered")
        let canonical = try members.string("canonical")
        guard isRegistered != nil || canonical != nil else {
            throw .badRequest("registered or canonical is missing")
        }
        guard isRegistered != false || canonical == nil else {
            throw .badRequest("canonical is for tokens that are registered")
        }
        guard canonical?.isEmpty != true else { throw .badRequest("canonical must not be empty") }
        let unregistered = self.state.setRegistration(of: tokens, isEnded: isRegistered == false, canonical: canonical)
        return .json(#"{"unregistered":\#(unregistered)}"#)
    }
}
