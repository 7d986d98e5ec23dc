import EventLoopHTTP
import FCMModel
import GatewayCore
import NIOCore
import StrictJSON

/// Explains a message, or sends it as a dry run, in the place of a tenant.
extension ConsolePages {
    private static let sample = """
        {
          "token": "",
          "notification": {"title": "Hello", "body": "A first message"}
        }
        """
    private static let maxMessage = 8 * 1024
    /// The answer is cut behind so many characters, so that the page stays small.
    private static let maxAnswer = 6 * 1024

    @Sendable
    func tryForm(_ request: ConsoleRequest) async throws -> ConsolePage {
        ConsolePage("Try", Self.form(request, Self.sample))
    }

    private static func form(_ request: ConsoleRequest, _ message: String) -> HTML {
        """
        <form method="post" action="/console/try">\(request.formToken)\(HTML.field("Tenant", "tenant", request.fields.text("tenant")))
        <label>Message, as for <code>POST /v1/tenants/{tenant}/messages</code>
        <textarea name="message" rows="12" spellcheck="false">
        \(message)</textarea></label>
        <button name="act" value="explain">Explain</button> <button name="act" value="dry-run">Dry run</button></form>
        <p>Neither brings a device a message. <em>Explain</em> calls nothing and costs one message of the tenant's quota. A
        <em>dry run</em> lets FCM check the message and costs one for each recipient. Both are in the audit.</p>
        """
    }

    @Sendable
    func tryMessage(_ request: ConsoleRequest) async throws -> ConsolePage {
        let text = request.fields.text("message") ?? ""
        guard text.utf8.count <= Self.maxMessage else {
            throw Refusal(.bodyTooLarge, "The console takes messages of at most \(Self.maxMessage) bytes")
        }
        let isDryRun = request.fields.text("act") == "dry-run"
        let reply: Reply
        do throws(Refusal) {
            reply = try await isDryRun ? self.send(text, request) : self.explain(text, request)
        } catch {
            reply = error.reply()
        }
        let shown = JSONLayout.indented(String(buffer: reply.body))
        let cut: HTML? = shown.count > Self.maxAnswer ? "<p>The answer is cut here.</p>" : nil
        let content: HTML = """
            \(Self.form(request, text))
            <h2 id="answer">Answer</h2><p>\(HTML.state("\(reply.status)", isGood: reply.status < 400))</p>
            <pre tabindex="0" aria-labelledby="answer">\(String(shown.prefix(Self.maxAnswer)))</pre>\(cut)
            """
        var page = ConsolePage("Try", content)
        page.code = reply.code?.rawValue
        return page
    }

    private func explain(_ text: String, _ request: ConsoleRequest) async throws(Refusal) -> Reply {
        let caller = try self.sender(request)
        let body = try ExplainRoutes.Body(ByteBuffer(string: text), contentType: "application/json", form: .rest)
        let command = try body.command(by: caller, at: request.exchange.time)
        let preview = try await self.console.pipeline.recordedPreview(
            command,
            maxRequests: SendExplanation.maxShownRequests
        )
        return Reply(contentType: "application/json", SendExplanation(of: body.message, command, preview).json)
    }

    private func send(_ text: String, _ request: ConsoleRequest) async throws(Refusal) -> Reply {
        let caller = try self.sender(request)
        var (target, message) = try SendBody.read(
            JSONBody.members(of: ByteBuffer(string: text), contentType: "application/json", limits: JSONLimits())
        )
        message.dryRun = true
        let command = try SendCommand(message, to: target, by: caller, at: request.exchange.time)
        guard command.payloadBytes <= command.target.maxPayloadBytes else {
            throw Refusal.messageTooBig(command.payloadBytes, to: command.target)
        }
        return SendMessage.AnswerWriter(target: command.target).reply(to: await self.console.pipeline.send(command))
    }

    private func sender(_ request: ConsoleRequest) throws(Refusal) -> Caller {
        guard let id = request.fields.text("tenant").flatMap({ TenantID($0) }),
            let profile = try? self.administration.profile(of: id)
        else { throw Refusal(.notFound, "There is no such tenant") }
        guard !profile.tenant.isDisabled else { throw Refusal(.forbidden, "The tenant is disabled") }
        return try request.caller(for: profile)
    }
}

/// Lays JSON out in lines.
enum JSONLayout {
    /// Returns compact JSON with a line for each member and element.
    static func indented(_ json: String) -> String {
        var (text, depth, isString, isEscaped) = ("", 0, false, false)
        for character in json {
            if isString {
                text.append(character)
                isString = isEscaped || character != "\""
                isEscaped = !isEscaped && character == "\\"
                continue
            }
            isString = character == "\""
            if "{[".contains(character) { depth += 1 }
            if "}]".contains(character) { depth -= 1 }
            let line = "\n" + String(repeating: "  ", count: max(0, depth))
            switch character {
            case "{", "[", ",": text += "\(character)" + line
            case "}", "]": text += line + "\(character)"
            case ":": text += ": "
            default: text.append(character)
            }
        }
        return text
    }
}
