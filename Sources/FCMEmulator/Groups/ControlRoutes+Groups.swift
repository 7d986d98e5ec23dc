/// Control routes for device groups.
extension ControlRoutes {
    /// Answers a request to one of them, nil if it is for another.
    func handleGroups(_ request: ReceivedRequest, name: Substring) throws(ControlError) -> Answer? {
        switch (name, request.method) {
        case ("groups", "GET"):
            let groups = self.state.groups.map { group in
                let members = group.members.map(JSONValue.quoted).joined(separator: ",")
                let (name, sender) = (JSONValue.quoted(group.name), JSONValue.quoted(group.sender))
                return #"{"name":\#(name),"project_id":\#(sender),"tokens":[\#(members)]}"#
            }
            return .json(#"{"groups":[\#(groups.joined(separator: ","))]}"#)
        case ("groups", "DELETE"):
            let query = try Self.query(of: request, allowed: ["name", "project_id"])
            guard let name = query["name"], let sender = query["project_id"] else {
                throw .badRequest("name and project_id are needed")
            }
            guard self.state.deleteGroup(named: name, sender: sender) else {
                throw ControlError(status: 404, message: "there is no such group")
            }
            return .noContent
        case ("invalid-tokens", "POST"):
            let members = try ControlMembers(body: request.bodyBytes)
            try members.allow(["tokens"])
            guard let tokens = try members.strings("tokens") else { throw .badRequest("tokens is missing") }
            self.state.refuse(tokens: Set(tokens))
            return .noContent
        default:
            return nil
        }
    }
}
