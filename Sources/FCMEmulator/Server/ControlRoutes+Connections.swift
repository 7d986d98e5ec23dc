/// Control routes for connections and settings.
extension ControlRoutes {
    /// Answers a request to one of them, nil if it is for another.
    func handleConnections(_ request: ReceivedRequest, name: Substring) throws(ControlError) -> Answer? {
        switch (name, request.method) {
        case ("connections", "GET"):
            return try Self.json(self.state.connections.report)
        case ("goaway", "POST"):
            let count = self.state.connections.command(.goAway(refusing: nil))
            return .json(#"{"connections":\#(count)}"#)
        case ("settings", "GET"):
            return .json(self.state.settings.json)
        case ("settings", "POST"):
            var settings = self.state.settings
            try settings.apply(ControlMembers(body: request.bodyBytes))
            self.state.update { $0 = settings }
            return .json(settings.json)
        default:
            return nil
        }
    }
}
