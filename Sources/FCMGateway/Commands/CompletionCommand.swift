import ArgumentParser
import Foundation
import GatewayService
import StrictJSON

/// `completion`: sets up a shell's completion of verbs and options.
struct CompletionCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completion",
        abstract: "Install shell completion of verbs and options.",
        subcommands: [Install.self]
    )

    struct Install: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "install",
            abstract: "Write the completions to your shell's directory.",
            discussion: """
                Without an argument, the completions are for the shell that the variable SHELL names. Root installs \
                them for all users, other users for themselves. They work in new shells. To print them instead: \
                fcm-gateway --generate-completion-script SHELL

                Example:
                  fcm-gateway completion install bash
                """
        )

        @Argument(help: "The shell: bash, zsh or fish.") var shell: Shell?
        @OptionGroup var output: OutputOptions

        func run() throws {
            let environment = ProcessInfo.processInfo.environment
            guard let shell = self.shell ?? Shell(environment: environment) else {
                throw ValidationError("SHELL is not bash, zsh or fish: name one of them.")
            }
            let (directory, remark) = shell.directory(isRoot: geteuid() == 0, environment)
            let file = "\(directory)/\(shell.fileName)"
            do {
                try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
                try FCMGatewayCommand.completionScript(for: shell.completion)
                    .write(toFile: file, atomically: true, encoding: .utf8)
            } catch {
                throw CommandFailure("\(file) can't be written: \(SystemError.text(error))")
            }
            let text = ["completions written to \(file)", remark].compactMap(\.self).joined(separator: "\n")
            try CommandOutput.done(text, json: self.output.isJSON) { $0.member("file", file) }.write()
        }
    }

    /// A shell, and the place of its completions.
    enum Shell: String, CaseIterable, ExpressibleByArgument {
        case bash
        case zsh
        case fish

        init?(environment: [String: String]) {
            self.init(rawValue: URL(fileURLWithPath: environment["SHELL"] ?? "/").lastPathComponent)
        }

        var completion: CompletionShell {
            switch self {
            case .bash: .bash
            case .zsh: .zsh
            case .fish: .fish
            }
        }

        var fileName: String {
            switch self {
            case .bash: "fcm-gateway"
            case .zsh: "_fcm-gateway"
            case .fish: "fcm-gateway.fish"
            }
        }

        /// Returns the folder, and a remark if the user must do more.
        func directory(isRoot: Bool, _ environment: [String: String]) -> (path: String, remark: String?) {
            let home = environment["HOME"] ?? NSHomeDirectory()
            let data = environment["XDG_DATA_HOME"] ?? "\(home)/.local/share"
            switch self {
            case .bash:
                let needed = "bash reads this file if the package bash-completion is installed"
                return ("\(isRoot ? "/usr/local/share" : data)/bash-completion/completions", needed)
            case .zsh:
                if isRoot { return ("/usr/local/share/zsh/site-functions", nil) }
                let directory = "\(data)/zsh/site-functions"
                return (directory, "put this before compinit in ~/.zshrc: fpath=(\(directory) $fpath)")
            case .fish:
                if isRoot { return ("/usr/local/share/fish/vendor_completions.d", nil) }
                return ("\(environment["XDG_CONFIG_HOME"] ?? "\(home)/.config")/fish/completions", nil)
            }
        }
    }
}
